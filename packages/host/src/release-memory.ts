/**
 * Collects garbage once, `delay` milliseconds from now, if this process runs with `--expose-gc`.
 * Starting up leaves garbage that an idle process would keep for ever, because nothing allocates
 * enough to have it collected. Does not keep the process alive.
 */
export function releaseMemoryLater(delay: number): void {
  const { gc } = globalThis;
  if (gc !== undefined) setTimeout(() => void gc(), delay).unref();
}
