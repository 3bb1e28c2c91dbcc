import type { ClusterEvent, ClusterStateSource } from '@switchyard/core';

/**
 * `source`, read from now on: listing a large cluster takes as long as asking the host what it can do, and neither
 * needs the other. `batches` of the result hands over what has come, then the rest; it may be called once. Abort
 * `signal` to stop reading, also when nobody has called it; the signal of `batches` stops it as well.
 */
export function readAhead(source: ClusterStateSource, signal: AbortSignal): ClusterStateSource {
  const reading = new AbortController();
  const batches = source.batches(AbortSignal.any([signal, reading.signal]))[Symbol.asyncIterator]();
  const first = batches.next();
  first.catch(() => undefined); // told to whoever reads
  return {
    async *batches(stop): AsyncGenerator<readonly ClusterEvent[]> {
      if (stop.aborted) reading.abort(stop.reason);
      stop.addEventListener('abort', () => reading.abort(stop.reason), { once: true });
      for (let next = await first; next.done !== true; next = await batches.next()) yield next.value;
    },
  };
}
