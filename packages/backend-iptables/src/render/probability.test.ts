import { expect, test } from 'vitest';
import { probabilityOf } from './endpoint-chains.ts';

test.each([
  [2, '0.50000000000'],
  [3, '0.33333333349'],
  [7, '0.14285714272'],
  [10, '0.10000000009'],
  [11, '0.09090909082'],
  [1000, '0.00100000016'],
  // Exactly between two printed numbers: printf takes the even one.
  [4096, '0.00024414062'],
])('a chance of one in %i is printed as %s', (count, text) => {
  expect(probabilityOf(count)).toBe(text);
});

test('each endpoint of a cascade gets its share, to one part in a million', () => {
  for (const endpoints of [2, 3, 10, 97]) {
    let remaining = 1;
    for (let left = endpoints; left > 0; left -= 1) {
      const share = remaining * (left > 1 ? Number(probabilityOf(left)) : 1);
      expect(share * endpoints).toBeCloseTo(1, 6);
      remaining -= share;
    }
  }
});
