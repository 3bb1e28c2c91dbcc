import { expect, test } from 'vitest';
import { FrontendDigest } from './frontend-digest.ts';
import { FrontendIndex } from '../kernel/maps/frontend-index.ts';

type Entry = readonly [key: number, value: number];

function digestOf(...entries: readonly Entry[]): FrontendDigest {
  const digest = new FrontendDigest();
  for (const [key, value] of entries) digest.add(keyOf(key), 0, Uint32Array.of(value, 7), 0);
  return digest;
}

function keyOf(key: number): Uint32Array {
  return Uint32Array.of(0, 0, 0xffff0000, key, 0x50, 0);
}

test.each<[string, readonly Entry[], readonly Entry[], boolean]>([
  ['nothing and nothing', [], [], true],
  [
    'another order',
    [
      [1, 1],
      [2, 2],
    ],
    [
      [2, 2],
      [1, 1],
    ],
    true,
  ],
  [
    'one less',
    [
      [1, 1],
      [2, 2],
    ],
    [[1, 1]],
    false,
  ],
  [
    'another value',
    [
      [1, 1],
      [2, 2],
    ],
    [
      [1, 1],
      [2, 3],
    ],
    false,
  ],
  [
    'values changed about',
    [
      [1, 1],
      [2, 2],
    ],
    [
      [1, 2],
      [2, 1],
    ],
    false,
  ],
  [
    'one twice',
    [[1, 1]],
    [
      [1, 1],
      [1, 1],
    ],
    false,
  ],
  ['nothing and an entry of zeros', [], [[0, 0]], false],
])('%s: the same? %#', (_, a, b, isSame) => {
  expect(digestOf(...a).equals(digestOf(...b))).toBe(isSame);
});

test('an index has the digest of its current entries', () => {
  const index = new FrontendIndex();
  for (let key = 0; key < 2000; key++) index.set(keyOf(key), key, 7);
  for (let key = 0; key < 2000; key += 2) index.set(keyOf(key), key + 5, 7);
  for (let key = 3; key < 2000; key++) index.delete(index.find(keyOf(key)));
  expect(index.digest.equals(digestOf([0, 5], [1, 1], [2, 7]))).toBe(true);
  expect(index.changes).toBe(2000 + 1000 + 1997);
});
