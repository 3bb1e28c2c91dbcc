import type { WorkloadEvent } from './workload-event.ts';

/** Hands events to every reader. Readers get what happens after they began; none of them can hold up the others. */
export interface EventFeed {
  emit(event: WorkloadEvent): void;
  /** Ends by abort, and then quietly. */
  read(signal: AbortSignal): AsyncIterable<WorkloadEvent>;
}

/** A feed; `onEvent` is called at once with every event. */
export function createEventFeed(onEvent?: (event: WorkloadEvent) => void): EventFeed {
  const readers = new Set<(event: WorkloadEvent) => void>();
  return {
    emit: (event) => {
      onEvent?.(event);
      for (const push of readers) push(event);
    },
    read: (signal) => {
      // Subscribed now, not at the first `next()`: nothing is lost between the call and the loop.
      let queue: WorkloadEvent[] = [];
      let wake: () => void = () => undefined;
      const push = (event: WorkloadEvent): void => {
        queue.push(event);
        wake();
      };
      readers.add(push);
      const stop = (): void => {
        readers.delete(push);
        wake();
      };
      signal.addEventListener('abort', stop, { once: true });
      return (async function* () {
        try {
          while (!signal.aborted) {
            const ready = queue;
            queue = [];
            yield* ready;
            if (queue.length > 0 || signal.aborted) continue;
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
          }
        } finally {
          readers.delete(push);
          signal.removeEventListener('abort', stop);
        }
      })();
    },
  };
}
