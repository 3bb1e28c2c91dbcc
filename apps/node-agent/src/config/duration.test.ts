import { describe, expect, test } from 'vitest';
import { formatDuration, tryParseDuration } from './read-value.ts';

describe('durations as Go writes them', () => {
  test.each([
    [0, '0s'],
    [1, '1ms'],
    [0.25, '250µs'],
    [1500, '1.5s'],
    [30_000, '30s'],
    [90_000, '1m30s'],
    [900_000, '15m0s'],
    [86_400_000, '24h0m0s'],
    [3_661_500, '1h1m1.5s'],
    [-1000, '-1s'],
  ])('%d ms is %s, and back', (value, text) => {
    expect(formatDuration(value)).toBe(text);
    expect(tryParseDuration(text)).toBe(value);
  });

  test.each(['', '-', '5', 'soon', '1d', '--1s'])('%j is none', (text) => {
    expect(tryParseDuration(text)).toBeUndefined();
  });
});
