import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Times of the calls after the start, in milliseconds: several during warm-up, the last one after compilation. */
const moments: readonly number[] = [2000, 4000, 8000, 16_000, 60_000];

/**
 * Calls `release` five times in the first minute, each in its own turn of the event loop. Start-up leaves free memory that
 * an idle process would never return. The timers do not keep the process alive.
 */
export function releaseMemoryLater(release: () => void): void {
  for (const moment of moments) setTimeout(release, moment).unref();
}

/** Shorter busy periods leave nothing that is worth a collection. */
const fewestChanges = 500;

/** Time without a change after which a busy period is over, in milliseconds. */
const rest = 60_000;

/**
 * Returns a function to be called at each change. `release` is called a minute after the last of at least 500 changes: V8 keeps what
 * they needed at most, and an idle process would never return it. The timer does not keep the process alive.
 */
export function releaseMemoryAtRest(release: () => void): () => void {
  let changes = 0;
  let last = 0;
  let timer: NodeJS.Timeout | undefined;
  const look = (): void => {
    const rested = performance.now() - last;
    if (rested < rest) {
      timer = setTimeout(look, rest - rested).unref();
      return;
    }
    timer = undefined;
    changes = 0;
    release();
  };
  return () => {
    changes += 1;
    last = performance.now();
    if (changes >= fewestChanges) timer ??= setTimeout(look, rest).unref();
  };
}

// Set here, and not on the command line: with other flags V8 refuses the compiled code that Node has of its own modules, and compiles
// those that a program needs again. `v8.cachedDataVersionTag()` shows which flags matter.

/**
 * Collects all garbage and returns its pages to the kernel. Only a last-resort collection empties V8's pool of free pages. It blocks
 * the process for 2 to 4 ms per MB of live heap: call it while the process is idle.
 */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc'); // for contexts that are made from now on
  const collect = runInNewContext('gc') as NodeJS.GCFunction; // of V8
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/**
 * Lets V8's heap double before V8 collects again. Call it before the first list, when all modules are loaded: a small growing heap would
 * be collected again and again, or grow to four times its size. `preferLittleMemory` ends it.
 */
export function preferQuickStart(): void {
  setFlagsFromString('--heap-growing-percent=100');
}

/**
 * Makes V8 collect after a few MB of heap growth, at most a quarter, instead of 8 or more, and keep no free pages. Call it
 * after the start: start-up makes much garbage and would be slower.
 */
export function preferLittleMemory(): void {
  setFlagsFromString('--heap-growing-percent=25');
  setFlagsFromString('--optimize-for-size');
}
