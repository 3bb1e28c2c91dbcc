import { expect, test } from 'vitest';
import { DriftTally } from './foreign-transactions.ts';

test('names the worst kind, and lists the worst changes first', () => {
  const tally = new DriftTally();
  tally.add('element', 'element a of x');
  tally.add('chain', 'chain c deleted');
  tally.add('rule', 'rule of chain c deleted');
  expect(tally.summary()).toEqual({
    kind: 'chain',
    changes: ['chain c deleted', 'rule of chain c deleted', 'element a of x'],
  });
});

test('lists five changes and counts the others, also when two are merged', () => {
  const [left, right] = [new DriftTally(), new DriftTally()];
  for (let index = 0; index < 4; index++) left.add('element', `left ${index}`);
  for (let index = 0; index < 300; index++) right.add('element', `right ${index}`);
  left.merge(right);
  expect(left.summary()).toEqual({
    kind: 'element',
    changes: ['left 0', 'left 1', 'left 2', 'left 3', 'right 0', 'and 299 more'],
  });
});

test('a deleted table speaks for everything that was in it', () => {
  const tally = new DriftTally();
  tally.add('rule', 'rule of chain c deleted');
  tally.add('table', 'table t deleted');
  expect(tally.summary()).toEqual({ kind: 'table', changes: ['table t deleted'] });
});

test('is empty until something is added', () => {
  const tally = new DriftTally();
  expect(tally.isEmpty).toBe(true);
  tally.add('unknown', 'lost');
  expect(tally.isEmpty).toBe(false);
});
