import { describe, expect, test } from 'vitest';
import { parseCgroup2Mount } from './cgroup.ts';
import { checkHostName, checkLabName, labOfNamespace, namespaceName } from './names.ts';

describe('a lab name', () => {
  test.each(['a', 'demo', 'lab12345'])('may be %s', (name) => {
    expect(() => checkLabName(name)).not.toThrow();
  });
  test.each(['', 'Demo', 'a-b', 'lab123456', '../x', 'a b'])('may not be %j', (name) => {
    expect(() => checkLabName(name)).toThrow(/not a lab name/);
  });
});

test.each(['', '-a', 'a/b', '..', 'A', `a${'b'.repeat(200)}`])('a host may not be called %j', (name) => {
  expect(() => checkHostName(name)).toThrow(/not a host or pod name/);
});

test.each([
  { namespace: namespaceName('demo', 'node1'), lab: 'demo' },
  { namespace: namespaceName('a', 'zeroapp-7d9-x'), lab: 'a' },
  { namespace: 'swy-demo', lab: undefined },
  { namespace: 'swy-toolonglab-node1', lab: undefined },
  { namespace: 'other-demo-node1', lab: undefined },
])('namespace $namespace belongs to lab $lab', ({ namespace, lab }) => {
  expect(labOfNamespace(namespace)).toBe(lab);
});

test.each([
  {
    machine: 'a hybrid machine',
    mounts: 'cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n',
    found: '/sys/fs/cgroup/unified',
  },
  {
    machine: 'a unified machine',
    mounts: 'proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n',
    found: '/sys/fs/cgroup',
  },
  { machine: 'a machine with v1 only', mounts: 'cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n', found: undefined },
])('$machine has cgroup v2 at $found', ({ mounts, found }) => {
  expect(parseCgroup2Mount(mounts)).toBe(found);
});
