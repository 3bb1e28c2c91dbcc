import type { Branded } from './brand.ts';
import { UsageError } from './errors.ts';

/** A duration or an instant (since the Unix epoch) in milliseconds; fractions are allowed. */
export type Millis = Branded<number, 'Millis'>;

/** Checks that `value` is a finite number and brands it. */
export function millis(value: number): Millis {
  if (!Number.isFinite(value)) throw new UsageError('time.invalid', `not a time in milliseconds: ${value}`);
  return value as Millis;
}

/** `seconds` as milliseconds. */
export function seconds(value: number): Millis {
  return millis(value * 1000);
}

/** The only way core code learns the time or waits. Tests inject `ManualClock`. */
export interface Clock {
  /** Wall clock: milliseconds since the Unix epoch. May jump. */
  now(): Millis;
  /** Monotonic milliseconds since an arbitrary origin. Use it for intervals. */
  monotonic(): Millis;
  /** Resolves after `duration`; rejects with `signal.reason` when aborted first. */
  sleep(duration: Millis, signal: AbortSignal): Promise<void>;
}

/** What `performance.now` is to be added to for the wall clock; follows its jumps. */
let wallOrigin = performance.timeOrigin;

/** The wall clock, finer than Date.now tells it. */
function wallClock(): number {
  const monotonic = performance.now();
  const ahead = wallOrigin + monotonic - Date.now(); // 0 to 1 while nobody has set the clock: Date.now cuts fractions off
  if (ahead < -1 || ahead > 2) wallOrigin -= ahead;
  return wallOrigin + monotonic;
}

/** Milliseconds. */
const beat = 100;

/**
 * How long to wait before looking again, some `interval`: until the beat that is nearest to its end. Intervals of whole tenths of a
 * second end together so, and the process wakes up once for all of them, which costs more than most looks.
 */
export function untilBeat(clock: Clock, interval: Millis): Millis {
  const grid = interval % beat === 0 ? beat : interval;
  const now = clock.monotonic();
  return millis(Math.ceil(Math.round((now + interval) / grid) * grid - now));
}

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => millis(wallClock()),
  monotonic: () => millis(performance.now()),
  sleep: (duration, signal) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const onAbort = (): void => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      const timer = setTimeout(() => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      }, duration);
      signal.addEventListener('abort', onAbort, { once: true });
    }),
};

/** A source of numbers in [0, 1). Injected so that back-off jitter is reproducible in tests. */
export type Random = () => number;
