import { objectArgument, requireText } from './argument.ts';
import type { NodeName } from '../model/records/keys.ts';

/** Subject of an event. */
export interface EventSubject {
  /** Default: `v1`. */
  readonly apiVersion?: string;
  /** Such as `Node`, `Service`, `Lease`. */
  readonly kind: string;
  /** Empty for cluster-scoped objects, such as a Node. */
  readonly namespace: string;
  readonly name: string;
  /** Empty when it is not known. */
  readonly uid: string;
}

/** Returns a Node as the subject of an event. Throws `UsageError` for a name that is no text. */
export function nodeSubject(nodeName: NodeName): EventSubject {
  requireText('nodeSubject: nodeName', nodeName);
  return { kind: 'Node', namespace: '', name: nodeName, uid: '' };
}

/** Returns a Service as the subject of an event. Throws `UsageError` for names that are no texts. */
export function serviceSubject(service: Pick<EventSubject, 'namespace' | 'name'>): EventSubject {
  const { namespace, name } = objectArgument('serviceSubject: service', service);
  requireText('serviceSubject: service.namespace', namespace);
  requireText('serviceSubject: service.name', name);
  return { kind: 'Service', namespace, name, uid: '' };
}

/** One event of the Kubernetes API (events.k8s.io/v1). */
export interface RecordedEvent {
  readonly type: 'Normal' | 'Warning';
  /** CamelCase and constant, such as `FailedToStartServiceHealthcheck`; users filter by it. */
  readonly reason: string;
  /** Action of the reporter, CamelCase and constant, such as `StartServiceHealthcheck`. */
  readonly action: string;
  readonly regarding: EventSubject;
  /** Text for users; cut at 1,024 characters. */
  readonly note: string;
}

/** Receiver of events. Never blocks, never throws: an event that cannot be delivered becomes a log line. */
export interface EventRecorder {
  record(event: RecordedEvent): void;
}

/** Discards everything. */
export const noopEvents: EventRecorder = { record: () => undefined };
