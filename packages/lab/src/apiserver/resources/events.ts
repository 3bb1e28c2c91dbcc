import { type JsonObject, numberAt, stringAt } from '../json.ts';
import { defineResource, type ResourceDefinition } from '../resource.ts';
import { eventSchema, newEventSchema } from '../schema/cluster.ts';
import { column, nameColumn, since } from './common.ts';

const involved = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'fieldPath'] as const;

/** v1 Event. Kept apart from events.k8s.io: an event written to one group is not seen in the other. */
export const events: ResourceDefinition = defineResource({
  group: '',
  version: 'v1',
  plural: 'events',
  singular: 'event',
  kind: 'Event',
  shortNames: ['ev'],
  isNamespaced: true,
  schema: eventSchema,
  nameRule: 'any',
  fieldSelectors: {
    ...Object.fromEntries(
      involved.map((field) => [
        `involvedObject.${field}`,
        (object: JsonObject) => stringAt(object, 'involvedObject', field),
      ]),
    ),
    reason: (object) => stringAt(object, 'reason'),
    type: (object) => stringAt(object, 'type'),
  },
  columns: [
    column('Last Seen', (object, now) => since(lastSeen(object), now)),
    column('Type', (object) => stringAt(object, 'type')),
    column('Reason', (object) => stringAt(object, 'reason')),
    column('Object', (object) => objectText(object, 'involvedObject')),
    column('Subobject', (object) => stringAt(object, 'involvedObject', 'fieldPath'), 1),
    column('Source', (object) => stringAt(object, 'source', 'component') || stringAt(object, 'reportingComponent'), 1),
    column('Message', (object) => stringAt(object, 'message').trim()),
    column('First Seen', (object, now) => since(stringAt(object, 'firstTimestamp') || lastSeen(object), now), 1),
    column('Count', (object) => numberAt(object, 'count') ?? 1, 1),
    { ...nameColumn, priority: 1 },
  ],
});

/** events.k8s.io/v1 Event. */
export const newEvents: ResourceDefinition = defineResource({
  group: 'events.k8s.io',
  version: 'v1',
  plural: 'events',
  singular: 'event',
  kind: 'Event',
  shortNames: ['ev'],
  isNamespaced: true,
  schema: newEventSchema,
  nameRule: 'any',
  fieldSelectors: {
    reason: (object) => stringAt(object, 'reason'),
    'regarding.name': (object) => stringAt(object, 'regarding', 'name'),
    type: (object) => stringAt(object, 'type'),
  },
  columns: [
    column('Last Seen', (object, now) => since(lastSeen(object), now)),
    column('Type', (object) => stringAt(object, 'type')),
    column('Reason', (object) => stringAt(object, 'reason')),
    column('Object', (object) => objectText(object, 'regarding')),
    column('Message', (object) => stringAt(object, 'note').trim()),
    { ...nameColumn, priority: 1 },
  ],
});

function lastSeen(object: JsonObject): string {
  return (
    stringAt(object, 'lastTimestamp') ||
    stringAt(object, 'series', 'lastObservedTime') ||
    stringAt(object, 'eventTime') ||
    stringAt(object, 'metadata', 'creationTimestamp')
  );
}

function objectText(object: JsonObject, field: string): string {
  return `${stringAt(object, field, 'kind').toLowerCase()}/${stringAt(object, field, 'name')}`;
}
