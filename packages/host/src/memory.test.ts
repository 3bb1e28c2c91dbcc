import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { releaseMemoryAtRest } from './memory.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

test('memory is released once, a minute after the last of many changes', () => {
  const release = vi.fn();
  const onChange = releaseMemoryAtRest(release);
  for (let count = 0; count < 499; count++) onChange();
  expect(vi.getTimerCount()).toBe(0); // nothing wakes an agent with few changes
  vi.advanceTimersByTime(600_000);
  onChange();
  vi.advanceTimersByTime(50_000);
  onChange();
  vi.advanceTimersByTime(59_999);
  expect(release).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(release).toHaveBeenCalledOnce();
  onChange();
  vi.advanceTimersByTime(600_000);
  expect(release).toHaveBeenCalledOnce();
  for (let count = 0; count < 500; count++) onChange();
  vi.advanceTimersByTime(60_000);
  expect(release).toHaveBeenCalledTimes(2);
});
