import { afterEach, expect, test, vi } from 'vitest';
import { systemClock } from './time.ts';

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
