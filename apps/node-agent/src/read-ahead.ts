import type { ClusterEvent, ClusterStateSource } from '@switchyard/core';

/**
 * `source`, read from now on: listing a large cluster takes as long as asking the host what it can do, and neither
 * needs the other. `batches` of the result hands over what has come, then the rest; it may be called once, and ends with
 * its signal too. Abort `signal` to stop reading, also when nobody has called it.
 */
export function readAhead(source: ClusterStateSource, signal: AbortSignal): ClusterStateSource {
  const enough = new AbortController();
  const batches = source.batches(AbortSignal.any([signal, enough.signal]))[Symbol.asyncIterator]();
  const first = batches.next();
  first.catch(() => undefined); // told to whoever reads
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
