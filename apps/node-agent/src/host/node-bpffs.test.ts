import { noopLogger } from '@switchyard/core';
import { expect, test } from 'vitest';
import { mountNodeBpffs } from './node-bpffs.ts';

const bpffs = '/run/switchyard/bpf';
const root = '20 1 8:1 / / rw,relatime master:1 - ext4 /dev/sda1 rw';
const alone = `31 20 0:6 /fs/bpf ${bpffs} rw master:7 - sysfs sysfs rw`;
const shared = `31 20 0:6 /fs/bpf ${bpffs} rw shared:7 - sysfs sysfs rw`;

function mountsAt(path: string, pid: number, mountInfo: readonly string[], isThere: boolean): readonly string[] {
  const mounted: string[] = [];
  mountNodeBpffs(path, {
    files: { read: () => mountInfo.join('\n'), write: () => undefined },
    pid,
    isBpffs: () => isThere,
    mount: (where) => void mounted.push(where),
    logger: noopLogger,
  });
  return mounted;
}

test.each([
  ['is there already', 1, [root], true, []],
  ['is not on a plain machine', 4711, [root], false, [bpffs]],
  ['is not in a container whose mount reaches the node', 1, [root, shared], false, [bpffs]],
] as const)('a bpffs that %s', (_, pid, mountInfo, isThere, expected) => {
  expect(mountsAt(bpffs, pid, mountInfo, isThere)).toEqual(expected);
});

test.each([
  ['whose mount ends with it', [root, alone]],
  ['without a mount there', [root]],
  ['with a mount that reaches the node elsewhere', [root, shared.replace(bpffs, '/run/switch')]],
  ['whose mount table cannot be read', []],
])('is not mounted in a container %s', (_, mountInfo) => {
  expect(() => mountsAt(bpffs, 1, mountInfo, false)).toThrow(
    /no bpffs is at \/run\/switchyard\/bpf, and one mounted in this container would end with it/,
  );
});
