import type { Branded } from './brand.ts';
import { shown, wrongArgument } from './argument.ts';
import { UsageError, ConfigError } from './errors.ts';

/** A duration or an instant (since the Unix epoch) in milliseconds; fractions are allowed. */
export type Millis = Branded<number, 'Millis'>;

/** `value` milliseconds. Throws `UsageError` unless it is a finite number. */
export function millis(value: number): Millis {
  if (!Number.isFinite(value)) throw new UsageError('time.invalid', `not a time in milliseconds: ${shown(value)}`);
  return value as Millis;
}

/** `value` seconds as milliseconds. Throws `UsageError` unless it is a finite number. */
export function seconds(value: number): Millis {
  if (typeof value !== 'number') throw new UsageError('time.invalid', `not a time in seconds: ${shown(value)}`);
  return millis(value * 1000);
}

/** Clock that core code uses to read the time and to wait. Tests inject `ManualClock`. */
export interface Clock {
  /** Wall clock: milliseconds since the Unix epoch. May jump. */
  now(): Millis;
  /** Monotonic milliseconds since an arbitrary origin. Use it for intervals. */
  monotonic(): Millis;
  /** Resolves after `duration`; rejects with `signal.reason` when aborted first. */
  sleep(duration: Millis, signal: AbortSignal): Promise<void>;
}

/**
 * CPU time of the calling thread so far. Work that is limited to a share of a core measures itself with it: durations grow with
 * what else the machine does.
 */
export function cpuTime(): Millis {
  const { user, system } = process.threadCpuUsage(); // in microseconds
  return millis((user + system) / 1000);
}

/** Offset from `performance.now` to the wall clock; follows its jumps. */
let wallOrigin = performance.timeOrigin;

/** Returns the wall clock with a finer resolution than Date.now. */
function wallClock(): number {
  const monotonic = performance.now();
  const ahead = wallOrigin + monotonic - Date.now(); // 0 to 1 unless the clock was set: Date.now cuts fractions off
  if (ahead < -1 || ahead > 2) wallOrigin -= ahead;
  return wallOrigin + monotonic;
}

/** Grid of wake-ups, in milliseconds. */
const beat = 100;

/**
 * Returns the wait until the next periodic check: `interval`, rounded to the nearest beat. Intervals of whole tenths of a
 * second thus end together, and the process wakes up once for all of them; a wake-up costs more than most checks.
 * Throws `UsageError` for what is no clock or no time.
 */
export function untilBeat(clock: Clock, interval: Millis): Millis {
  if (typeof clock?.monotonic !== 'function') throw wrongArgument('untilBeat: clock', 'a clock', clock);
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

/**
 * Sleeps for `duration`, or until `ready` settles if that is earlier. Leaves no timer behind. Rejects with `signal.reason`, or as
 * `ready` does.
 */
export async function sleepUntil(
  ready: Promise<void>,
  wait: { readonly clock: Pick<Clock, 'sleep'>; readonly duration: Millis },
  signal: AbortSignal,
): Promise<void> {
  const { clock, duration } = wait ?? {};
  if (typeof clock?.sleep !== 'function') throw wrongArgument('sleepUntil: clock', 'a clock', clock);
  if (!(signal instanceof AbortSignal)) throw wrongArgument('sleepUntil: signal', 'a signal', signal);
  signal.throwIfAborted();
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(signal.reason);
  signal.addEventListener('abort', onAbort);
  const slept = clock.sleep(duration, stop.signal);
  slept.catch(() => undefined); // stopped, not failed
  try {
    await Promise.race([ready, slept]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    stop.abort();
  }
}

/** A source of numbers in [0, 1). Injected so that back-off jitter is reproducible in tests. */
export type Random = () => number;

const unitMillis: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Parses a duration in the format of Go, such as `30s`, `1m30s`, `1.5h` or `0`. Throws `ConfigError` for negative ones. */
export function parseGoDuration(text: string): Millis {
  if (text === '0') return millis(0);
  const parts = typeof text === 'string' ? [...text.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g)] : [];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) {
    throw new ConfigError('duration.invalid', `not a duration such as 30s or 1m30s: ${shown(text)}`);
  }
  return millis(parts.reduce((sum, [, value, unit = '']) => sum + Number(value) * (unitMillis[unit] ?? 0), 0));
}
