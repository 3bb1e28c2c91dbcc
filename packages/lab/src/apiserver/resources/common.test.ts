import { millis } from '@switchyard/core';
import { expect, test } from 'vitest';
import { since } from './common.ts';

const now = millis(Date.parse('2026-11-21T12:00:00Z'));

test.each([
  [0, '0s'],
  [119, '119s'],
  [120, '2m'],
  [199, '3m19s'],
  [600, '10m'],
  [10_799, '179m'],
  [10_800, '3h'],
  [12_600, '3h30m'],
  [100_000, '27h'],
  [172_800, '2d'],
  [180_000, '2d2h'],
  [691_200, '8d'],
  [-5, '0s'],
])('%i seconds ago reads %s', (seconds, text) => {
  expect(since(new Date(now - seconds * 1000).toISOString(), now)).toBe(text);
});

test('an unknown time', () => {
  expect(since('', now)).toBe('<unknown>');
});
