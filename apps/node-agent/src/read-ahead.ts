import type { ClusterEvent, ClusterStateSource } from '@switchyard/core';

/**
 * `source`, read from now on: listing a large cluster takes as long as asking the host what it can do, and neither
 * needs the other. `batches` of the result hands over what has come, then the rest; it may be called once. Abort
 * `signal` to stop reading, also when nobody has called it.
 */
export function readAhead(source: ClusterStateSource, signal: AbortSignal): ClusterStateSource {
  const batches = source.batches(signal)[Symbol.asyncIterator]();
  const first = batches.next();
  first.catch(() => undefined); // told to whoever reads
  return {
    async *batches(): AsyncGenerator<readonly ClusterEvent[]> {
      for (let next = await first; next.done !== true; next = await batches.next()) yield next.value;
    },
  };
}
