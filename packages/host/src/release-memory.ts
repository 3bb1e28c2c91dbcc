import { setFlagsFromString } from 'node:v8';

/** Times of the calls after the start, in milliseconds: several during warm-up, the last one after compilation. */
const moments: readonly number[] = [2000, 4000, 8000, 16_000, 60_000];

/**
 * Calls `release` five times in the first minute, each in its own turn of the event loop. Start-up leaves free memory that
 * an idle process would never return. The timers do not keep the process alive.
 */
export function releaseMemoryLater(release: () => void): void {
  for (const moment of moments) setTimeout(release, moment).unref();
}

/**
 * Collects all garbage and returns its pages to the kernel if Node runs with --expose-gc; otherwise does nothing. Only a
 * last-resort collection empties V8's pool of free pages. It blocks the process for 2 to 4 ms per MB of live heap: call it
 * while the process is idle.
 */
export function collectGarbage(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/**
 * Makes V8 collect after a few MB of heap growth instead of 8 or more, and keep no free pages. Call it after the start:
 * start-up makes much garbage and would be slower.
 */
export function preferLittleMemory(): void {
  setFlagsFromString('--optimize-for-size');
}
