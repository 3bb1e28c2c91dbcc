import { expect, test } from 'vitest';
import { isEqual } from './values.ts';

test.each([
  [1, 1, true],
  [1, '1', false],
  [undefined, undefined, true],
  [undefined, {}, false],
  [[], [], true],
  [[], {}, false],
  [{}, [], false],
  [[1, 2], [1, 2], true],
  [[1, 2], [2, 1], false],
  [[1], [1, 2], false],
  [{ a: 1, b: [2] }, { b: [2], a: 1 }, true],
  [{ a: 1 }, { a: 2 }, false],
  [{ a: undefined }, { b: undefined }, false],
  [{ a: { b: { c: 1 } } }, { a: { b: { c: 2 } } }, false],
])('%j and %j are equal: %s', (a, b, expected) => {
  expect(isEqual(a, b)).toBe(expected);
});
