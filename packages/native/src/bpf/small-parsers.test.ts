import { describe, expect, test } from 'vitest';
import { NativeError } from '../native-error.ts';
import { readName } from './call.ts';
import { BpfLoadFailure } from './load-object.ts';
import { mountOf } from './mounts.ts';
import { countCpus } from './kernel-map.ts';

test.each([
  ['0\n', 1],
  ['0-3\n', 4],
  ['0-1,4-7\n', 8],
  ['0,2', 3],
])('the set of CPUs %j needs room for %i', (set, count) => {
  expect(countCpus(set)).toBe(count);
});

describe('mount points', () => {
  const text = [
    '22 1 0:20 / /proc rw,nosuid - proc proc rw',
    '33 25 0:28 / /sys/fs/cgroup/uni\\040fied rw,relatime shared:9 - cgroup2 cgroup2 rw',
    '34 25 0:29 / /second rw - cgroup2 cgroup2 rw',
    '',
  ].join('\n');

  test.each([
    ['cgroup2', '/sys/fs/cgroup/uni fied'],
    ['proc', '/proc'],
    ['bpf', undefined],
    ['cgroup', undefined],
  ])('of type %s: %s', (type, path) => {
    expect(mountOf(type, text)).toBe(path);
  });
});

test.each([
  ['whole\0\0\0', 'whole'],
  ['sixteencharacter', 'sixteencharacter'],
  ['\0', ''],
])('the name in %j is %j', (text, name) => {
  const bytes = new Uint8Array(20).fill(65);
  bytes.set(new TextEncoder().encode(text), 2);
  if (text.length < 16) bytes[2 + text.length] = 0;
  expect(readName(bytes, 2, 16)).toBe(name);
});

describe('a load that failed', () => {
  test('ends with what the verifier said last, without its statistics', () => {
    const log = [
      "libbpf: prog 'broken': BPF program load failed: Permission denied",
      "libbpf: prog 'broken': -- BEGIN PROG LOAD LOG --",
      '0: (61) r1 = *(u32 *)(r1 +76)',
      'invalid access to packet, off=100 size=1',
      'processed 3 insns (limit 1000000) max_states_per_insn 0',
      '-- END PROG LOAD LOG --',
      "libbpf: failed to load object 'x'",
      '',
    ].join('\n');
    const failure = new BpfLoadFailure('cannot load x', { errno: 13, log });
    expect(failure.message).toBe(
      'cannot load x: bpf failed with EACCES; it said: 0: (61) r1 = *(u32 *)(r1 +76) / invalid access to packet, off=100 size=1',
    );
    expect([failure.log, failure.errnoName, failure instanceof NativeError]).toEqual([log, 'EACCES', true]);
  });

  test('ends with what libbpf said where the verifier was not asked', () => {
    const log = "libbpf: elf: failed\nlibbpf: extern (func ksym) 'x': not found in kernel or module BTFs\n";
    expect(new BpfLoadFailure('cannot load x', { errno: 3, log }).message).toMatch(/it said: libbpf: extern/);
    expect(new BpfLoadFailure('cannot load x', { errno: 3, log: 'libbpf: a\nlibbpf: b' }).message).toMatch(
      /it said: libbpf: a \/ libbpf: b$/,
    );
    expect(new BpfLoadFailure('cannot load x', { errno: 3, log: '' }).message).toBe(
      'cannot load x: bpf failed with ESRCH',
    );
  });
});

test('an errno that only the kernel has a name for has it here too', () => {
  expect(new NativeError('cannot', { errno: 524, syscall: 'bpf' }).errnoName).toBe('ENOTSUPP');
});
