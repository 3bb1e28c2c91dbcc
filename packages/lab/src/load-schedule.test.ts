import { describe, expect, test } from 'vitest';
import { dueAt, dueCount, loadSchedule } from './load-loop.ts';

describe('an open loop of', () => {
  test.each([
    { rate: 20, duration: 1000, count: 20 },
    { rate: 20, duration: 0, count: 0 },
    { rate: 20, duration: 1, count: 1 },
    { rate: 30, duration: 100, count: 3 },
    { rate: 3, duration: 1000, count: 3 },
    { rate: 0.5, duration: 4000, count: 2 },
  ])('$rate/s for $duration ms has $count requests', ({ rate, duration, count }) => {
    expect(loadSchedule(0, rate, duration).count).toBe(count);
  });
});

const schedule = loadSchedule(1000, 20, 500);

test.each([
  { now: 999.9, due: 0 },
  { now: 1000, due: 1 },
  { now: 1049.9, due: 1 },
  { now: 1050, due: 2 },
  { now: 1449, due: 9 },
  { now: 1450, due: 10 },
  { now: 9999, due: 10 },
])('at $now ms $due requests of 10 from 1000 ms on at 20/s are due', ({ now, due }) => {
  expect(dueCount(schedule, now)).toBe(due);
});

test('every request is due exactly when its own time has come, at any rate', () => {
  for (const rate of [0.7, 3, 7, 20, 333, 5000]) {
    const schedule = loadSchedule(123.456, rate, 2000);
    for (let sequence = 0; sequence < schedule.count; sequence++) {
      expect(dueCount(schedule, dueAt(schedule, sequence))).toBe(sequence + 1);
    }
  }
});
