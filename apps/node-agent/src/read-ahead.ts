import type { ClusterEvent, ClusterStateSource } from '@switchyard/core';

/**
 * Starts reading `source` at once: listing a large cluster takes as long as probing the host, and neither needs the
 * other. `batches` of the result yields the batches read so far, then the others; it may be called once, and ends with its
 * signal too. Abort `signal` to stop reading, also if `batches` was not called.
 */
export function readAhead(source: ClusterStateSource, signal: AbortSignal): ClusterStateSource {
  const enough = new AbortController();
  const batches = source.batches(AbortSignal.any([signal, enough.signal]))[Symbol.asyncIterator]();
  const first = batches.next();
  first.catch(() => undefined); // the reader gets the failure
  return {
    async *batches(reading): AsyncGenerator<readonly ClusterEvent[]> {
      const stop = (): void => enough.abort(reading.reason);
      reading.addEventListener('abort', stop, { once: true });
      if (reading.aborted) stop();
      try {
        for (let next = await first; next.done !== true; next = await batches.next()) yield next.value;
      } finally {
        reading.removeEventListener('abort', stop);
      }
    },
  };
}
