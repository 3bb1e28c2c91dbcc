import { millis } from '@switchyard/core';
import { expect, test } from 'vitest';
import { aCase, aFailedCheck, anError, aReport, aRun, aSkip } from '../testing/report-builders.ts';
import { countsLine, timeCovered } from './columns.ts';
import { durationText } from './texts.ts';

test('the last line counts all runs', () => {
  const cases = [aCase(), aCase({ checks: [aFailedCheck()] }), aSkip('a', 'why'), anError('b', 'why')];
  expect(countsLine(aReport(aRun({ cases }), aRun()))).toBe('2 passed, 1 failed, 1 skipped, 1 error in 1 min 05 s');
});

test.each([
  { when: 'side by side', starts: ['12:00:00', '12:00:00'], seconds: 60 },
  { when: 'half side by side', starts: ['12:00:00', '12:00:30'], seconds: 90 },
  { when: 'days apart, later first', starts: ['13:00:00', '12:00:00'], seconds: 120 },
])('two minutes of runs $when cover $seconds s', ({ starts, seconds }) => {
  const runs = starts.map((start) => aRun({ startedAt: `2026-01-31T${start}.000Z`, duration: millis(60_000) }));
  expect(timeCovered(runs)).toBe(seconds * 1000);
});

test.each([
  [0, '0.0 s'],
  [420, '0.4 s'],
  [9_960, '10 s'],
  [59_600, '1 min 00 s'],
  [185_000, '3 min 05 s'],
  [3_720_000, '1 h 02 min'],
])('%d ms is %s', (duration, text) => {
  expect(durationText(duration)).toBe(text);
});
