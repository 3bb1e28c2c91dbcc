/** When a fresh process is asked, in milliseconds: while it warms up, and once when all is compiled. */
const moments: readonly number[] = [2000, 4000, 8000, 16_000, 60_000];

/**
 * Calls `release` a few times in the first minute, each time from a turn of its own. Starting up leaves free memory that
 * an idle process would keep for ever. Does not keep the process alive.
 */
export function releaseMemoryLater(release: () => void): void {
  for (const moment of moments) setTimeout(release, moment).unref();
}

/**
 * Collects all garbage now, if Node runs with --expose-gc; else does nothing. The process stands still for about 10 ms
 * per 10 MB that live: for moments in which nobody waits.
 */
export function collectGarbage(): void {
  globalThis.gc?.();
}
