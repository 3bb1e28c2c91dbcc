import { EventEmitter, on } from 'node:events';
import type { WorkloadEvent } from './workload-event.ts';

/** Hands events to every reader. Readers get what happens after they began; none of them can hold up the others. */
export interface EventFeed {
  emit(event: WorkloadEvent): void;
  /** Ends by abort, and then quietly. */
  read(signal: AbortSignal): AsyncIterable<WorkloadEvent>;
}

/** A feed; `onEvent` is called at once with every event. */
export function createEventFeed(onEvent?: (event: WorkloadEvent) => void): EventFeed {
  const emitter = new EventEmitter().setMaxListeners(0);
  if (onEvent !== undefined) emitter.on('event', onEvent);
  return {
    emit: (event) => void emitter.emit('event', event),
    read: (signal) => {
      // Subscribed now, not at the first `next()`: nothing is lost between the call and the loop.
      const events = signal.aborted ? [] : on(emitter, 'event', { signal });
      return (async function* () {
        try {
          for await (const [event] of events) yield event as WorkloadEvent;
        } catch (error) {
          if (!signal.aborted) throw error;
        }
      })();
    },
  };
}
