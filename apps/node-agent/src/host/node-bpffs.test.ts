import { HostError, noopLogger } from '@switchyard/core';
import { expect, test } from 'vitest';
import { type BpffsMachine, mountBpffsForLater, mountNodeBpffs } from './node-bpffs.ts';

const bpffs = '/run/switchyard/bpf';
const root = '20 1 8:1 / / rw,relatime master:1 - ext4 /dev/sda1 rw';
const alone = `31 20 0:6 /fs/bpf ${bpffs} rw master:7 - sysfs sysfs rw`;
const shared = `31 20 0:6 /fs/bpf ${bpffs} rw shared:7 - sysfs sysfs rw`;

function machineWith(pid: number, mountInfo: readonly string[], more: Partial<BpffsMachine> = {}): BpffsMachine {
  const files = { read: () => mountInfo.join('\n'), write: () => undefined };
  return { files, pid, isBpffs: () => false, mount: () => undefined, logger: noopLogger, ...more };
}

function mountsAt(
  path: string,
  pid: number,
  mountInfo: readonly string[],
  { isThere = false, by = mountNodeBpffs } = {},
): readonly string[] {
  const mounted: string[] = [];
  by(path, machineWith(pid, mountInfo, { isBpffs: () => isThere, mount: (where) => void mounted.push(where) }));
  return mounted;
}

test.each([
  ['is there already', 1, [root], true, []],
  ['is not on a plain machine', 4711, [root], false, [bpffs]],
  ['is not in a container whose mount reaches the node', 1, [root, shared], false, [bpffs]],
] as const)('a bpffs that %s', (_, pid, mountInfo, isThere, expected) => {
  expect(mountsAt(bpffs, pid, mountInfo, { isThere })).toEqual(expected);
});

test.each([
  ['whose mount ends with it', [root, alone]],
  ['without a mount there', [root]],
  ['with a mount that reaches the node elsewhere', [root, shared.replace(bpffs, '/run/switch')]],
  ['whose mount table cannot be read', []],
])('is not mounted in a container %s', (_, mountInfo) => {
  expect(() => mountsAt(bpffs, 1, mountInfo)).toThrow(
    /no bpffs is at \/run\/switchyard\/bpf, and one mounted in this container would end with it/,
  );
});

test.each([
  ['by a container whose mount reaches the node', 1, [root, shared], false, [bpffs]],
  ['not where it is there already', 1, [root, shared], true, []],
  ['not by a container whose mount ends with it', 1, [root, alone], false, []],
  ['not by a container without a mount there', 1, [root], false, []],
  ['not by a process of a plain machine', 4711, [root, shared], false, []],
] as const)('for a later change of the mode a bpffs is mounted: %s', (_, pid, mountInfo, isThere, expected) => {
  expect(mountsAt(bpffs, pid, mountInfo, { isThere, by: mountBpffsForLater })).toEqual(expected);
});

test('a mount that fails is a warning for a mode that runs without', () => {
  const warned: unknown[] = [];
  const error = new HostError('native.mount', 'cannot mount bpffs: EPERM');
  const mount = (): never => {
    throw error;
  };
  const logger = { ...noopLogger, warn: (text: string, fields: unknown) => void warned.push([text, fields]) };
  mountBpffsForLater(bpffs, machineWith(1, [root, shared], { mount, logger }));
  expect(warned).toEqual([['cannot mount bpffs; a change to the ebpf mode needs it', { path: bpffs, error }]]);
});
