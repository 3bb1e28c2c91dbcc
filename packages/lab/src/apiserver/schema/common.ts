import {
  any,
  flagPointer,
  list,
  listByKey,
  long,
  longPointer,
  object,
  type ObjectSchema,
  text,
  textList,
  textMap,
  textPointer,
  textSet,
} from './schema.ts';

/** `metadata` of every object. */
export const objectMeta: ObjectSchema = object('ObjectMeta', {
  name: text,
  generateName: text,
  namespace: text,
  selfLink: text,
  uid: text,
  resourceVersion: text,
  generation: long,
  creationTimestamp: text,
  deletionTimestamp: text,
  deletionGracePeriodSeconds: longPointer,
  labels: textMap,
  annotations: textMap,
  ownerReferences: listByKey(
    'uid',
    object('OwnerReference', {
      apiVersion: text,
      kind: text,
      name: text,
      uid: text,
      controller: flagPointer,
      blockOwnerDeletion: flagPointer,
    }),
  ),
  finalizers: textSet,
  managedFields: list(any),
});

/** A condition of the newer kinds (meta/v1): reason and message are always written. */
export const metaCondition: ObjectSchema = object('Condition', {
  type: textPointer,
  status: textPointer,
  observedGeneration: long,
  lastTransitionTime: text,
  reason: textPointer,
  message: textPointer,
});

/** A condition of the older kinds, each of which has some of these fields. */
export const condition: ObjectSchema = object('Condition', {
  type: text,
  status: text,
  observedGeneration: long,
  lastProbeTime: text,
  lastHeartbeatTime: text,
  lastUpdateTime: text,
  lastTransitionTime: text,
  reason: text,
  message: text,
});

/** A label selector. */
export const labelSelector: ObjectSchema = object('LabelSelector', {
  matchLabels: textMap,
  matchExpressions: list(object('LabelSelectorRequirement', { key: text, operator: text, values: textList })),
});

/** A reference to another object. */
export const objectReference: ObjectSchema = object('ObjectReference', {
  kind: text,
  namespace: text,
  name: text,
  uid: text,
  apiVersion: text,
  resourceVersion: text,
  fieldPath: text,
});

/** The kind's own fields, preceded by the type and the metadata. */
export function topLevel(type: string, fields: ObjectSchema['fields']): ObjectSchema {
  return object(type, { kind: text, apiVersion: text, metadata: objectMeta, ...fields });
}

/** A reference to an object by name in the same namespace. */
export const localReference: ObjectSchema = object('LocalObjectReference', { name: textPointer });
