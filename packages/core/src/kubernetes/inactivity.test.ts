import { expect, test } from 'vitest';
import { ManualClock } from '../testing/manual-clock.ts';
import { millis } from '../base/time.ts';
import { inactive, startInactivityTimer } from './api-client.ts';

test('it aborts after the limit, and not before', async () => {
  const clock = new ManualClock();
  using timer = startInactivityTimer(clock, millis(100));
  await clock.advance(millis(99));
  expect(timer.signal.aborted).toBe(false);
  await clock.advance(millis(1));
  expect(timer.signal.reason).toBe(inactive);
});

test('a touch starts the count anew', async () => {
  const clock = new ManualClock();
  using timer = startInactivityTimer(clock, millis(100));
  await clock.advance(millis(60));
  timer.touch();
  await clock.advance(millis(99));
  expect(timer.signal.aborted).toBe(false);
  await clock.advance(millis(1));
  expect(timer.signal.aborted).toBe(true);
});

test('another limit counts from the moment it is set', async () => {
  const clock = new ManualClock();
  using timer = startInactivityTimer(clock, millis(100));
  await clock.advance(millis(90));
  timer.restart(millis(30));
  await clock.advance(millis(29));
  expect(timer.signal.aborted).toBe(false);
  await clock.advance(millis(1));
  expect(timer.signal.aborted).toBe(true);
});

test('disposed, it never aborts and leaves no timer', async () => {
  const clock = new ManualClock();
  const timer = startInactivityTimer(clock, millis(100));
  timer.restart(millis(50));
  timer[Symbol.dispose]();
  await clock.advance(millis(200));
  expect(timer.signal.aborted).toBe(false);
  expect(clock.sleeping).toBe(0);
});
