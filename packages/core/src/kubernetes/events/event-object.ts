import type { RecordedEvent, EventSubject } from '../../base/log.ts';
import type { Millis } from '../../base/time.ts';
import { microTime } from '../micro-time.ts';
import { ApiServerError } from '../../base/errors.ts';
import type { SendJson } from '../send-json.ts';

/** Reporter of events, by which users filter. */
export interface EventReporter {
  /** Such as `kube-proxy`, or `switchyard.dev/lb`. */
  readonly controller: string;
  /** Process of the controller: `<controller>-<node or host>`. Cut at 128 characters. */
  readonly instance: string;
}

/** An event and its repetitions: one object at the API server. */
export interface EventSeries {
  readonly event: RecordedEvent;
  /** Name of the object at the API server. */
  readonly name: string;
  /** Wall clock times of the first and the last repetition. */
  readonly first: Millis;
  readonly last: Millis;
  readonly count: number;
}

/** Returns the namespace of the event object: that of its subject, or `default` for Nodes, which have none. */
export function eventNamespace({ regarding }: RecordedEvent): string {
  return regarding.namespace === '' ? 'default' : regarding.namespace;
}

/**
 * Returns the key of an event's series. With notes `ignored`, as in kube-proxy, events that differ in their notes alone are
 * repetitions; with `distinct` they are different events, since the note of an object cannot change.
 */
export function seriesKey(event: RecordedEvent, notes: 'ignored' | 'distinct'): string {
  const { type, reason, action, regarding, note } = event;
  const { kind, namespace, name } = regarding;
  return JSON.stringify([type, reason, action, kind, namespace, name, notes === 'distinct' ? note : '']);
}

/** Returns a unique name for an event; `number` counts the events of this process. */
export function eventName({ regarding }: RecordedEvent, now: Millis, number: number): string {
  const nanoseconds = BigInt(Math.floor(now)) * 1_000_000n + BigInt(number % 1_000_000);
  return `${regarding.name.slice(0, maxNamePart)}.${nanoseconds.toString(16)}`;
}

/** Longest part of the subject's name. Object names have 253 characters at most. */
const maxNamePart = 230;
const maxNote = 1024;

/**
 * Returns the object for a POST to events.k8s.io/v1. The uid of a Node is its name, as in kubelet's and kube-proxy's events:
 * `kubectl describe node` searches by it.
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

/** Returns the merge patch that updates the count of a series. */
export function seriesPatch({ count, last }: EventSeries): object {
  return { series: { count, lastObservedTime: microTime(last) } };
}

/** Cuts a note at the limit of the API, which is in bytes. */
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

/**
 * Returns the uid of an event's subject; empty when it is unknown. `kubectl describe service` shows only events with the
 * Service's own uid. It comes from a list request, which this account may send anyway; a GET would need another
 * permission.
 */
export async function subjectUid(subject: EventSubject, send: SendJson, signal: AbortSignal): Promise<string> {
  if (subject.uid !== '' || subject.kind !== 'Service') return subject.uid;
  const query = new URLSearchParams({ fieldSelector: `metadata.name=${subject.name}`, limit: '1' });
  const path = `/api/v1/namespaces/${encodeURIComponent(subject.namespace)}/services?${query.toString()}`;
  try {
    const { status, body } = await send({ method: 'GET', path }, signal);
    return status === 200 ? uidOfFirst(JSON.parse(body)) : '';
  } catch (error) {
    if (error instanceof ApiServerError || error instanceof SyntaxError) return '';
    throw error;
  }
}

function uidOfFirst(list: unknown): string {
  const items = (list as { readonly items?: unknown } | null)?.items;
  const [first] = Array.isArray(items) ? (items as readonly unknown[]) : [];
  const uid = (first as { readonly metadata?: { readonly uid?: unknown } } | undefined)?.metadata?.uid;
  return typeof uid === 'string' ? uid : '';
}
