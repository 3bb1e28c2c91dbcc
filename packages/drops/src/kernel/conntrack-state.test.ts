import { expect, test } from 'vitest';
import { readConntrackState, type ReadFile } from './conntrack-state.ts';

const statistics = '/proc/net/stat/nf_conntrack';
const limitFile = '/proc/sys/net/netfilter/nf_conntrack_max';
const header =
  'entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  expect_new';

/** One CPU's line; `entries` and the columns that count failures are given. */
function cpu(entries: string, insertFailed: string, drop: string): string {
  return `${entries}  00000007 00000007 00000007 00000007 00000007 00000007 00000007 00000007 ${insertFailed} ${drop} 00000007 00000007  00000007`;
}

function filesOf(files: Readonly<Record<string, string>>): ReadFile {
  return (path) => files[path];
}

const twoCpus = [header, cpu('0000001f', '00000001', '0000000a'), cpu('0000001f', '00000020', '00000100'), ''].join(
  '\n',
);

test('the state has the entries once, and the failures of all CPUs', () => {
  const state = readConntrackState(filesOf({ [statistics]: twoCpus, [limitFile]: '262144\n' }));
  expect(state).toEqual({ entries: 31, limit: 262_144, full: 266, clashes: 33 });
});

test('the columns are found by their names', () => {
  const text = 'drop insert_failed early_drop entries\n00000001 00000002 00000004 00000008\n';
  expect(readConntrackState(filesOf({ [statistics]: text }))).toMatchObject({ entries: 8, full: 1, clashes: 2 });
});

test('counters that the kernel does not have are 0', () => {
  const state = readConntrackState(filesOf({ [statistics]: 'entries searched\n00000003 00000004\n' }));
  expect(state).toMatchObject({ entries: 3, full: 0, clashes: 0 });
});

test.each([
  ['missing', {}],
  ['no number', { [limitFile]: 'many\n' }],
])('a limit that is %s is undefined', (_, files) => {
  const state = readConntrackState(filesOf({ [statistics]: twoCpus, ...files }));
  expect(state).toMatchObject({ entries: 31, limit: undefined });
});

test('there is no state where the kernel does not track', () => {
  expect(readConntrackState(filesOf({ [limitFile]: '262144\n' }))).toBeUndefined();
});
