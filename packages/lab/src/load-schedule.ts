/** Due times of an open loop's requests, in milliseconds of any clock. */
export interface LoadSchedule {
  readonly start: number;
  /** Requests per second. */
  readonly rate: number;
  /** Number of requests; sequences run from 0 to `count` - 1. */
  readonly count: number;
}

/** A schedule of `rate` requests per second for `duration` milliseconds; the first is due at `start`. */
export function loadSchedule(start: number, rate: number, duration: number): LoadSchedule {
  // Rounded first: 0.1 s at 30/s is 3 requests, not the 4 that 3.0000000000000004 would give.
  return { start, rate, count: Math.ceil(Math.round(rate * duration * 1e6) / 1e9) };
}

/** Returns the due time of request `sequence`, computed from the start so that rounding errors do not add up. */
export function dueAt(schedule: LoadSchedule, sequence: number): number {
  return schedule.start + (sequence * 1000) / schedule.rate;
}

/** Returns the number of requests due at `now`, counted from the first. */
export function dueCount(schedule: LoadSchedule, now: number): number {
  if (now < schedule.start) return 0;
  const elapsed = Math.floor(((now - schedule.start) * schedule.rate) / 1000 + 1e-9);
  return Math.min(schedule.count, elapsed + 1);
}
