import { afterEach, describe, expect, test, vi } from 'vitest';
import { ManualClock } from '../testing/manual-clock.ts';
import { millis, sleepUntil, systemClock, untilBeat } from './time.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

const day = 86_400_000;

test('the wall clock agrees with Date, to a millisecond', () => {
  const before = Date.now();
  const now = systemClock.now();
  expect(now).toBeGreaterThanOrEqual(before - 1);
  expect(now).toBeLessThanOrEqual(Date.now() + 2);
});

test.each([
  ['forwards', day],
  ['backwards', -day],
])('a wall clock that is set %s is followed there and back; the monotonic one knows nothing of it', (_, jump) => {
  const before = systemClock.now();
  const monotonic = systemClock.monotonic();
  const real = Date.now.bind(Date);
  const spy = vi.spyOn(Date, 'now').mockImplementation(() => real() + jump);
  expect(Math.abs(systemClock.now() - before - jump)).toBeLessThan(1000);
  expect(systemClock.monotonic() - monotonic).toBeLessThan(1000);
  spy.mockRestore();
  expect(Math.abs(systemClock.now() - before)).toBeLessThan(1000);
});

test.each<[string, { now: number; interval: number }, number]>([
  ['on a beat: the next one', { now: 1000, interval: 100 }, 100],
  ['after a beat: the rest', { now: 1020, interval: 100 }, 80],
  ['late: not the beat that is near but the one after', { now: 1060, interval: 100 }, 140],
  ['a timer that was a little early: no second waking', { now: 999.7, interval: 100 }, 101],
  ['a longer interval: with the others', { now: 1030, interval: 400 }, 370],
  ['no whole tenths: a grid of its own', { now: 1010, interval: 250 }, 240],
])('waiting for a beat, %s', (_, { now, interval }, rest) => {
  expect(untilBeat(new ManualClock(now), millis(interval))).toBe(rest);
});

describe('sleepUntil', () => {
  const never = new Promise<void>(() => undefined);
  const duration = millis(50);

  test('ends after the duration', async () => {
    const clock = new ManualClock();
    const slept = sleepUntil(never, { clock, duration }, new AbortController().signal);
    await clock.advance(50);
    await slept;
    expect(clock.monotonic()).toBe(50);
  });

  test('ends as soon as it is ready, and leaves no timer', async () => {
    const clock = new ManualClock();
    const ready = Promise.withResolvers<void>();
    const slept = sleepUntil(ready.promise, { clock, duration }, new AbortController().signal);
    expect(clock.sleeping).toBe(1);
    ready.resolve();
    await slept;
    expect(clock.sleeping).toBe(0);
  });

  test.each(['before', 'during'])('an abort %s rejects with its reason', async (when) => {
    const clock = new ManualClock();
    const stop = new AbortController();
    const reason = new Error('enough');
    if (when === 'before') stop.abort(reason);
    const slept = sleepUntil(never, { clock, duration }, stop.signal);
    stop.abort(reason);
    await expect(slept).rejects.toBe(reason);
    expect(clock.sleeping).toBe(0);
  });
});
