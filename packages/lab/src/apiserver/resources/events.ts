import { type FieldError, invalidField, requiredField } from '../status-error.ts';
import { type JsonObject, numberAt, stringAt } from '../json.ts';
import { defineResource, type ResourceDefinition } from '../resource.ts';
import { column, nameColumn, since, textSelectors } from './common.ts';
import * as t from '../schema.ts';

const eventSource = t.object('EventSource', { component: t.text, host: t.text });

const eventSeries = t.object('EventSeries', { count: t.int, lastObservedTime: t.text });

const involved = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'fieldPath'] as const;

/** v1 Event. */
export const events: ResourceDefinition = defineResource({
  kind: 'Event',
  shortNames: ['ev'],
  isNamespaced: true,
  schema: t.topLevel('Event', {
    involvedObject: t.objectReference,
    reason: t.text,
    message: t.text,
    source: eventSource,
    firstTimestamp: t.text,
    lastTimestamp: t.text,
    count: t.int,
    type: t.text,
    eventTime: t.text,
    series: eventSeries,
    action: t.text,
    related: t.objectReference,
    reportingComponent: t.text,
    reportingInstance: t.text,
  }),
  nameRule: 'any',
  validate: validateEvent,
  fieldSelectors: textSelectors(...involved.map((field) => `involvedObject.${field}`), 'reason', 'type'),
  columns: [
    column('Last Seen', (object, now) => since(lastSeen(object), now)),
    column('Type', (object) => stringAt(object, 'type')),
    column('Reason', (object) => stringAt(object, 'reason')),
    column('Object', (object) => objectText(object, 'involvedObject')),
    column('Subobject', (object) => stringAt(object, 'involvedObject', 'fieldPath'), 1),
    column('Source', (object) => stringAt(object, 'source', 'component') || stringAt(object, 'reportingComponent'), 1),
    column('Message', (object) => stringAt(object, 'message').trim()),
    column('First Seen', (object, now) => since(stringAt(object, 'firstTimestamp') || lastSeen(object), now), 1),
    column('Count', (object) => numberAt(object, 'series', 'count') ?? numberAt(object, 'count') ?? 1, 1),
    { ...nameColumn, priority: 1 },
  ],
});

/** v1 names of the fields of events.k8s.io/v1. */
const oldNames: Readonly<Record<string, string>> = {
  regarding: 'involvedObject',
  note: 'message',
  reportingController: 'reportingComponent',
  deprecatedSource: 'source',
  deprecatedFirstTimestamp: 'firstTimestamp',
  deprecatedLastTimestamp: 'lastTimestamp',
  deprecatedCount: 'count',
};
const newNames = Object.fromEntries(Object.entries(oldNames).map(([ours, theirs]) => [theirs, ours]));

/** events.k8s.io/v1 Event: the same objects as v1 has. */
export const newEvents: ResourceDefinition = defineResource({
  group: 'events.k8s.io',
  kind: 'Event',
  shortNames: ['ev'],
  isNamespaced: true,
  schema: t.topLevel('Event', {
    eventTime: t.text,
    series: eventSeries,
    ...t.fields(t.text, 'reportingController', 'reportingInstance', 'action', 'reason'),
    regarding: t.objectReference,
    related: t.objectReference,
    note: t.text,
    type: t.text,
    deprecatedSource: eventSource,
    deprecatedFirstTimestamp: t.text,
    deprecatedLastTimestamp: t.text,
    deprecatedCount: t.int,
  }),
  nameRule: 'any',
  view: { of: events, toBase: (object) => renamed(object, oldNames), fromBase: (object) => renamed(object, newNames) },
  validate: validateNewEvent,
  fieldSelectors: textSelectors('reason', 'regarding.name', 'type'),
  columns: [
    column('Last Seen', (object, now) => since(lastSeen(object), now)),
    column('Type', (object) => stringAt(object, 'type')),
    column('Reason', (object) => stringAt(object, 'reason')),
    column('Object', (object) => objectText(object, 'regarding')),
    column('Message', (object) => stringAt(object, 'note').trim()),
    { ...nameColumn, priority: 1 },
  ],
});

function renamed(object: JsonObject, names: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([field, value]) => [names[field] ?? field, value]));
}

function validateEvent(object: JsonObject): readonly FieldError[] {
  return namespaceErrors(object, 'involvedObject');
}

/** An Event about a cluster-scoped object belongs to `default`. */
function namespaceErrors(object: JsonObject, subject: 'involvedObject' | 'regarding'): readonly FieldError[] {
  const namespace = stringAt(object, 'metadata', 'namespace');
  const wanted = stringAt(object, subject, 'namespace') || 'default';
  if (namespace === wanted) return [];
  return [
    invalidField(`${subject}.namespace`, stringAt(object, subject, 'namespace'), 'does not match event.namespace'),
  ];
}

/** Maximum lengths in bytes. */
const limits = { reportingInstance: 128, action: 128, reason: 128, note: 1024 } as const;

/** This group has stricter rules, which do not apply to updates: the v1 group may have written the object. */
function* validateNewEvent(object: JsonObject, previous: JsonObject | undefined): Generator<FieldError, void> {
  yield* namespaceErrors(object, 'regarding');
  if (previous !== undefined) return;
  for (const field of ['eventTime', 'reportingController', 'reportingInstance', 'action', 'reason'] as const) {
    if (stringAt(object, field) === '') yield requiredField(field);
  }
  for (const [field, limit] of Object.entries(limits)) {
    if (Buffer.byteLength(stringAt(object, field)) > limit) {
      yield invalidField(field, '', `can have at most ${limit} characters`);
    }
  }
  const type = stringAt(object, 'type');
  if (type !== 'Normal' && type !== 'Warning') yield invalidField('type', type, 'has invalid value: ');
  for (const field of ['deprecatedFirstTimestamp', 'deprecatedLastTimestamp', 'deprecatedCount', 'deprecatedSource']) {
    if (object[field] !== undefined && object[field] !== null) yield invalidField(field, '', 'must not be set');
  }
}

function lastSeen(object: JsonObject): string {
  return (
    stringAt(object, 'series', 'lastObservedTime') ||
    stringAt(object, 'lastTimestamp') ||
    stringAt(object, 'eventTime') ||
    stringAt(object, 'metadata', 'creationTimestamp')
  );
}

function objectText(object: JsonObject, field: string): string {
  return `${stringAt(object, field, 'kind').toLowerCase()}/${stringAt(object, field, 'name')}`;
}
