import { EventEmitter, on } from 'node:events';
import type { Millis } from '@switchyard/core';
import type { Pod } from '@switchyard/core/kubernetes';
import { isPodReady, isPodTerminating } from './facts.ts';

interface PodMoment {
  /** Wall clock, with fractions. API changes have the time at which the lab's watch saw them, usually within 2 ms. */
  readonly at: Millis;
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
}

/** One event of a pod's life cycle, for timelines. */
export type WorkloadEvent = PodMoment &
  (
    | { readonly kind: 'podCreated' }
    | { readonly kind: 'podScheduled'; readonly node: string }
    | { readonly kind: 'processStarted'; readonly node: string; readonly container: string; readonly pid: number }
    | { readonly kind: 'podReady' | 'podUnready'; readonly node: string }
    | { readonly kind: 'deletionTimestampSet'; readonly node: string; readonly gracePeriodSeconds: number }
    | { readonly kind: 'sigtermSent'; readonly node: string; readonly container: string }
    /** The app's listening sockets are closed. Known for the echo server only, which keeps them until it exits. */
    | { readonly kind: 'acceptingStopped'; readonly node: string; readonly container: string }
    | {
        readonly kind: 'processEnded';
        readonly node: string;
        readonly container: string;
        /** Exit code, or the name of the signal that ended it. */
        readonly result: number | string;
      }
    | { readonly kind: 'objectGone'; readonly node: string }
  );

export function podMoment(pod: Pod, at: Millis): PodMoment {
  const { namespace = 'default', name = '', uid = '' } = pod.metadata;
  return { at, namespace, pod: name, uid };
}

/** Returns the events between two states of one pod, in order of a pod's life cycle. Undefined means that the pod does not exist. */
export function podEvents(before: Pod | undefined, after: Pod | undefined, at: Millis): readonly WorkloadEvent[] {
  const pod = after ?? before;
  if (pod === undefined) return [];
  const moment = podMoment(pod, at);
  const node = pod.spec?.nodeName ?? '';
  const events: WorkloadEvent[] = [];
  if (after === undefined) return [{ ...moment, kind: 'objectGone', node }];
  if (before === undefined) events.push({ ...moment, kind: 'podCreated' });
  if (before?.spec?.nodeName === undefined && node !== '') events.push({ ...moment, kind: 'podScheduled', node });
  const wasReady = before !== undefined && isPodReady(before);
  if (isPodReady(after) !== wasReady) events.push({ ...moment, kind: wasReady ? 'podUnready' : 'podReady', node });
  const wasTerminating = before !== undefined && isPodTerminating(before);
  if (isPodTerminating(after) && !wasTerminating) {
    const gracePeriodSeconds = after.metadata.deletionGracePeriodSeconds ?? 0;
    events.push({ ...moment, kind: 'deletionTimestampSet', node, gracePeriodSeconds });
  }
  return events;
}

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
