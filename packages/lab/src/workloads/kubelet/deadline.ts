import { type Clock, millis, type Millis } from '@switchyard/core';

/** A monotonic instant that can be brought forward while callers wait for it, as a grace period can. */
export interface Deadline {
  readonly at: Millis;
  /** Does nothing when `at` is not earlier. */
  shorten(at: Millis): void;
  /** Resolves at the instant; rejects with `signal.reason` when aborted first. */
  reached(signal: AbortSignal): Promise<void>;
}

/** Timers beyond this overflow and fire at once. */
const longestSleep = 24 * 3600 * 1000;

/** A deadline at `at` on the clock's monotonic scale. */
export function createDeadline(clock: Clock, at: Millis): Deadline {
  let current = at;
  let moved = new AbortController();
  return {
    get at() {
      return current;
    },
    shorten: (next) => {
      if (next >= current) return;
      current = next;
      const old = moved;
      moved = new AbortController();
      old.abort();
    },
    reached: async (signal) => {
      while (clock.monotonic() < current) {
        const either = AbortSignal.any([signal, moved.signal]);
        await clock
          .sleep(millis(Math.min(longestSleep, Math.max(0, current - clock.monotonic()))), either)
          .catch(() => undefined);
        signal.throwIfAborted();
      }
    },
  };
}
