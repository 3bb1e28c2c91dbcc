import { HostError, type Millis, millis } from '@switchyard/core';
import { RecordingBackend } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import type { ProxyMode } from '../config/proxy-mode.ts';
import { dumpModes, dumpText, familyDumpText } from './dump-text.ts';

const { signal } = new AbortController();

function backend(body: string, age: Millis | undefined): RecordingBackend {
  const one = new RecordingBackend({ heartbeat: age === undefined ? {} : { age } });
  one.dump = () => Promise.resolve(body);
  return one;
}

test.each([
  ['no rules', '', undefined, '# IPv4: the kernel holds no state of this agent\n'],
  ['rules of an unknown age', 'a\n', undefined, '# IPv4: age of the rules unknown\na\n'],
  ['rules with an age', 'a\n', millis(4_600), '# IPv4: rules last known to be right 5 s ago\na\n'],
  ['no Service, but an age', '', millis(0), '# IPv4: rules last known to be right 0 s ago\n'],
])('%s', async (_, body, age, expected) => {
  expect(await familyDumpText(backend(body, age), signal)).toBe(expected);
  expect(await dumpText([backend(body, age)], signal)).toBe(expected);
});

test('each family stands below its own head', async () => {
  const families = [backend('a\n', millis(0)), backend('b\n', millis(1000))];
  expect(await dumpText(families, signal)).toBe(
    '# IPv4: rules last known to be right 0 s ago\na\n# IPv4: rules last known to be right 1 s ago\nb\n',
  );
});

test.each<readonly [string, Readonly<Record<ProxyMode, string | undefined>>, readonly ProxyMode[], string]>([
  [
    'the mode that has rules, where none was said',
    { nftables: '', iptables: 'a\n', ebpf: undefined },
    ['nftables', 'iptables'],
    '# IPv4: age of the rules unknown\na\n',
  ],
  [
    'the mode that was said',
    { nftables: 'a\n', iptables: '', ebpf: '' },
    ['iptables'],
    '# IPv4: the kernel holds no state of this agent\n',
  ],
  [
    'what there is, where one mode cannot run',
    { nftables: undefined, iptables: '', ebpf: undefined },
    ['nftables', 'iptables', 'ebpf'],
    '# IPv4: the kernel holds no state of this agent\n',
  ],
])('a dump shows %s', async (_, bodies, modes, expected) => {
  const open = async (one: ProxyMode) => {
    const body = bodies[one];
    if (body === undefined) throw new HostError('host.unusable', `no ${one} here`);
    return { backends: [backend(body, undefined)], variant: undefined };
  };
  expect(await dumpModes(open, modes, signal)).toBe(expected);
});

test('a dump fails where one mode has nothing and the other cannot be read', async () => {
  const open = (one: ProxyMode) =>
    one === 'nftables'
      ? Promise.resolve({ backends: [backend('', undefined)], variant: undefined })
      : Promise.reject(new HostError('iptables.incompatible', 'cannot read table nat'));
  await expect(dumpModes(open, ['nftables', 'iptables'], signal)).rejects.toThrow('cannot read table nat');
});

test('a dump fails where no mode can be read', async () => {
  const open = (): Promise<never> => Promise.reject(new HostError('host.unusable', 'not here'));
  await expect(dumpModes(open, ['nftables', 'iptables'], signal)).rejects.toThrow('not here');
});
