import { millis, seconds } from '@switchyard/core';
import { expect, test } from 'vitest';
import { durationText, rangeText } from './duration-text.ts';

test.each([
  [0, '0 s'],
  [250, '250 ms'],
  [1500, '1.5 s'],
  [16_150, '16.15 s'],
  [60_000, '60 s'],
])('durationText of %d ms is %s', (duration, text) => {
  expect(durationText(millis(duration))).toBe(text);
});

test('rangeText has one unit', () => {
  expect(rangeText(millis(500), seconds(1))).toBe('0.5 to 1 s');
});
