import { setTimeout as sleep } from 'node:timers/promises';

/** A test waits that long only if it fails, in milliseconds. */
const limit = 60_000;

/** Looks every 20 ms until `find` gives something other than undefined and false, and returns it. Rejects, naming `what`, after a minute. */
export async function until<T>(
  what: string,
  find: () => Promise<T | false | undefined> | T | false | undefined,
): Promise<T> {
  const end = performance.now() + limit;
  for (;;) {
    const found = await find();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`waited ${limit / 1000} s for ${what}`);
    await sleep(20);
  }
}
