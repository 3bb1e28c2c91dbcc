import { type Millis, millis, UsageError } from '@switchyard/core';

/**
 * Factor of the durations in manifests. It scales the lab's own waits (probes, `preStop`, grace periods,
 * `minReadySeconds`, crash back-off) and the echo server's `--delay-shutdown`; it never changes objects in the API.
 */
export interface TimeScale {
  /** 1 is real time, 0.1 is ten times as fast. */
  readonly factor: number;
  /** `seconds` of a manifest as the time to wait. */
  of(seconds: number): Millis;
}

/** Throws `UsageError` unless `factor` is in (0, 1]. */
export function timeScale(factor: number): TimeScale {
  if (!(factor > 0 && factor <= 1)) {
    throw new UsageError('workloads.time-scale', `not a time scale: ${factor}; use a number above 0 and at most 1`);
  }
  return { factor, of: (seconds) => millis(seconds * 1000 * factor) };
}

/** An instant as the API writes it: RFC 3339 in whole seconds, rounded down. */
export function apiTime(instant: Millis): string {
  return `${new Date(instant).toISOString().slice(0, 19)}Z`;
}

/** The instant of an API time; an absent time is undefined. */
export function parseApiTime(text: string | null | undefined): Millis | undefined {
  return text === undefined || text === null ? undefined : millis(Date.parse(text));
}
