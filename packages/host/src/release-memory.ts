/**
 * Collects garbage once, `delay` milliseconds from now, if this process runs with `--expose-gc`.
 * Starting up leaves garbage that an idle process would keep for ever, because nothing allocates
 * enough to have it collected. Does not keep the process alive.
 */
export function releaseMemoryLater(delay: number): void {
  const { gc } = globalThis;
  if (gc === undefined) return;
  // The last resort also drops compiled code that has not run again: 4 MB, where a plain one finds 1.
  const collect = (): void => void gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  setTimeout(collect, delay).unref();
}
