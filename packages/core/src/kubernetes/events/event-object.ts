import type { RecordedEvent } from '../../base/events.ts';
import type { Millis } from '../../base/time.ts';
import { microTime } from '../micro-time.ts';

/** Who tells of events: people filter by it. */
export interface EventReporter {
  /** Such as `kube-proxy`, or `switchyard.dev/lb`. */
  readonly controller: string;
  /** Which of its processes: `<controller>-<node or host>`. At most 128 characters are kept. */
  readonly instance: string;
}

/** An event and all its repetitions: one object at the API server. */
export interface EventSeries {
  readonly event: RecordedEvent;
  /** Of the object at the API server. */
  readonly name: string;
  /** Wall clock of the first and the last one. */
  readonly first: Millis;
  readonly last: Millis;
  readonly count: number;
}

/** Where the object is: with its Service; those about Nodes, which have no namespace, are in `default`. */
export function eventNamespace({ regarding }: RecordedEvent): string {
  return regarding.namespace === '' ? 'default' : regarding.namespace;
}

/**
 * What makes two events the same one again. Without notes, as in kube-proxy, a repetition counts up whatever it says;
 * with them another note is another event, for an object's note can never be changed.
 */
export function seriesKey(event: RecordedEvent, notes: 'ignored' | 'distinct'): string {
  const { type, reason, action, regarding, note } = event;
  const { kind, namespace, name } = regarding;
  return JSON.stringify([type, reason, action, kind, namespace, name, notes === 'distinct' ? note : '']);
}

/** A name that no other event has: `number` counts those of this process. */
export function eventName({ regarding }: RecordedEvent, now: Millis, number: number): string {
  const nanoseconds = BigInt(Math.floor(now)) * 1_000_000n + BigInt(number % 1_000_000);
  return `${regarding.name.slice(0, maxNamePart)}.${nanoseconds.toString(16)}`;
}

/** Names of objects have 253 characters at most. */
const maxNamePart = 230;
const maxNote = 1024;

/**
 * The object for a POST to events.k8s.io/v1. The uid of a Node is its name, as in kubelet's and kube-proxy's events:
 * `kubectl describe node` looks for that one.
 */
export function eventObject(series: EventSeries, reporter: EventReporter, subjectUid: string): object {
  const { event, first } = series;
  const { apiVersion = 'v1', kind, namespace, name } = event.regarding;
  const uid = kind === 'Node' ? name : subjectUid;
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: series.name, namespace: eventNamespace(event) },
    eventTime: microTime(first),
    reportingController: reporter.controller,
    reportingInstance: reporter.instance.slice(0, 128),
    action: event.action,
    reason: event.reason,
    regarding: {
      apiVersion,
      kind,
      ...(namespace === '' ? {} : { namespace }),
      name,
      ...(uid === '' ? {} : { uid }),
    },
    note: noteOf(event.note),
    type: event.type,
    ...(series.count > 1 ? seriesPatch(series) : {}),
  };
}

/** The merge patch that tells of repetitions. */
export function seriesPatch({ count, last }: EventSeries): object {
  return { series: { count, lastObservedTime: microTime(last) } };
}

/** Its limit is in bytes. */
function noteOf(note: string): string {
  const bytes = Buffer.from(note, 'utf8');
  if (bytes.length <= maxNote) return note;
  // A character that was cut in two becomes U+FFFD, which has three bytes.
  return (
    bytes
      .subarray(0, maxNote - 6)
      .toString('utf8')
      .replace(/\ufffd+$/, '') + '...'
  );
}
