/**
 * Runs tasks that belong together: when one ends, whether well or not, the others are aborted and awaited. Rejects with what the first
 * one rejected with. Tasks reject with `signal.reason` when aborted.
 */
export async function together(
  tasks: readonly ((signal: AbortSignal) => Promise<unknown>)[],
  signal: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const running = tasks.map((task) => task(either));
  try {
    await Promise.race(running);
  } finally {
    stop.abort();
    await Promise.allSettled(running);
  }
}
