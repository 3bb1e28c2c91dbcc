import { describe, expect, test } from 'vitest';
import { parseGoDuration } from './time.ts';

describe('parseGoDuration', () => {
  test.each([
    ['30s', 30_000],
    ['1m30s', 90_000],
    ['1h', 3_600_000],
    ['1.5h', 5_400_000],
    ['10ms', 10],
    ['.5s', 500],
    ['1h0m0s', 3_600_000],
    ['0', 0],
    ['0s', 0],
  ])('%s is %d ms', (text, expected) => {
    expect(parseGoDuration(text)).toBe(expected);
  });

  test.each(['', '30', '-1s', 's', '1 s', '1d', '1s2', 'abc', '1s,2s'])('%j is refused', (text) => {
    expect(() => parseGoDuration(text)).toThrow('not a duration');
  });
});
