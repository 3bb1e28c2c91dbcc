import { setFlagsFromString } from 'node:v8';

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
 * Collects all garbage now and gives its pages back, if Node runs with --expose-gc; else does nothing. Only a collection of
 * the last resort empties V8's pool of free pages. The process stands still for 2 to 4 ms per MB that lives: for a moment
 * in which nobody waits.
 */
export function collectGarbage(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/**
 * From now on V8 collects when the heap has grown by some MB, not only by 8 or more, and keeps no free pages. For a process
 * that has started: starting up makes much garbage, and is slower with it.
 */
export function preferLittleMemory(): void {
  setFlagsFromString('--optimize-for-size');
}
