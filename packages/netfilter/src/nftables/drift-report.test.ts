import { expect, test } from 'vitest';
import { DriftReport, DriftTally } from './foreign-transactions.ts';

const nft = { id: 1, pid: 815, name: 'nft' };

function tally(text: string): DriftTally {
  const some = new DriftTally();
  some.add('rule', text);
  return some;
}

test('is nothing until something is added, and again after it was taken', () => {
  const report = new DriftReport();
  expect(report.take()).toBeUndefined();
  report.add(tally('a'), nft);
  expect(report.take()).toEqual({ kind: 'rule', changes: ['a'], process: { pid: 815, name: 'nft' } });
  expect(report.take()).toBeUndefined();
});

test('names the process of the first transaction', () => {
  const report = new DriftReport();
  report.add(tally('a'), nft);
  report.add(tally('b'), { id: 2, pid: 816, name: 'other' });
  expect(report.take()).toMatchObject({ changes: ['a', 'b'], process: { name: 'nft' } });
});

test('names no process where the kernel does not', () => {
  const report = new DriftReport();
  report.add(tally('a'), { id: 1, pid: 0, name: '' });
  expect(report.take()?.process).toBeUndefined();
});

test.each([
  ['the next one', 8, true],
  ['the same one', 7, false],
  ['an older one', 5, false],
  ['the first one after the number overflowed', 0, true],
])('%s is new: %s', (_, id, isNew) => {
  const report = new DriftReport();
  report.isNew({ ...nft, id: id === 0 ? 0xffffffff : 7 });
  expect(report.isNew({ ...nft, id })).toBe(isNew);
});
