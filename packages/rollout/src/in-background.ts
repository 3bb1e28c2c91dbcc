/**
 * Starts work whose signal is aborted on disposal. Disposal waits for the end of the work and rejects as it does; an earlier end is
 * not reported before.
 */
export function inBackground(work: (signal: AbortSignal) => Promise<void>): AsyncDisposable {
  const stop = new AbortController();
  const running = work(stop.signal);
  running.catch(() => undefined); // reported on disposal
  return {
    [Symbol.asyncDispose]: async () => {
      stop.abort(new Error('the work was disposed'));
      await running;
    },
  };
}
