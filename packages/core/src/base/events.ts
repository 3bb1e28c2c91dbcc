import type { NodeName } from '../model/records/keys.ts';

/** What an event is about. */
export interface EventSubject {
  /** Default: `v1`. */
  readonly apiVersion?: string;
  /** Such as `Node`, `Service`, `Lease`. */
  readonly kind: string;
  /** Empty for what has none, such as a Node. */
  readonly namespace: string;
  readonly name: string;
  /** Empty when it is not known. */
  readonly uid: string;
}

/** Our Node as the subject of an event. */
export function nodeSubject(nodeName: NodeName): EventSubject {
  return { kind: 'Node', namespace: '', name: nodeName, uid: '' };
}

/** A Service as the subject of an event. */
export function serviceSubject({ namespace, name }: Pick<EventSubject, 'namespace' | 'name'>): EventSubject {
  return { kind: 'Service', namespace, name, uid: '' };
}

/** One event of the Kubernetes API (events.k8s.io/v1). */
export interface RecordedEvent {
  readonly type: 'Normal' | 'Warning';
  /** CamelCase and constant, such as `FailedToStartServiceHealthcheck`: what people filter by. */
  readonly reason: string;
  /** What we were doing, CamelCase and constant, such as `StartServiceHealthcheck`. */
  readonly action: string;
  readonly regarding: EventSubject;
  /** For people; at most 1,024 characters are kept. */
  readonly note: string;
}

/** Where events go. Never blocks, never throws: an event that cannot be delivered is a log line. */
export interface EventRecorder {
  record(event: RecordedEvent): void;
}

/** Discards everything. */
export const noopEvents: EventRecorder = { record: () => undefined };
