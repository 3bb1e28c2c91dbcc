import { EventEmitter, on } from 'node:events';
import type { WorkloadEvent } from './workload-event.ts';

/** Passes events to all readers. A reader gets the events after its call of `read`; a slow reader does not delay the others. */
export interface EventFeed {
  emit(event: WorkloadEvent): void;
  /** Ends without an error when `signal` aborts. */
  read(signal: AbortSignal): AsyncIterable<WorkloadEvent>;
}

/** A feed; `onEvent` is called at once with every event. */
export function createEventFeed(onEvent?: (event: WorkloadEvent) => void): EventFeed {
  const emitter = new EventEmitter().setMaxListeners(0);
  if (onEvent !== undefined) emitter.on('event', onEvent);
  return {
    emit: (event) => void emitter.emit('event', event),
    read: (signal) => {
      // Subscribed now, not at the first `next()`: no event is lost between the call and the loop.
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
