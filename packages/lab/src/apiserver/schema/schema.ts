/**
 * Shape of a kind, with the terms that decoding, strategic merge patch and OpenAPI need.
 *
 * `isKeptWhenZero`: an explicit zero (`''`, `0`, false) is kept by decoding; otherwise it counts
 * as absent, like Go's `omitempty`. Nulls, empty lists and empty maps always count as absent.
 */
export type Schema =
  | { readonly kind: 'string' | 'int32' | 'int64' | 'bool'; readonly isKeptWhenZero: boolean }
  | { readonly kind: 'intOrString' | 'any' }
  | ObjectSchema
  | { readonly kind: 'map'; readonly values: Schema }
  | ListSchema;

/** An object with known fields. */
export interface ObjectSchema {
  readonly kind: 'object';
  /** Name of the type, for example `ServicePort`; used in messages and as the OpenAPI definition. */
  readonly type: string;
  readonly fields: Readonly<Record<string, Schema>>;
  /** Unknown fields are kept, unchecked: this stand-in does not know the whole type. */
  readonly isOpen: boolean;
  /** kubectl lists the remaining fields of this union in `$retainKeys` of a strategic merge patch. */
  readonly isRetainKeys: boolean;
}

/** A list. Without a merge strategy a strategic merge patch replaces it as a whole. */
export interface ListSchema {
  readonly kind: 'list';
  readonly items: Schema;
  readonly merge:
    | { readonly kind: 'atomic' }
    | { readonly kind: 'byKey'; readonly key: string }
    | { readonly kind: 'asSet' };
  /** Written as an explicit null when it has no elements. */
  readonly isNullWhenEmpty: boolean;
}

/** A string whose empty value counts as absent. */
export const text: Schema = { kind: 'string', isKeptWhenZero: false };
/** A string whose empty value is kept. */
export const textPointer: Schema = { kind: 'string', isKeptWhenZero: true };
/** A 32-bit integer whose zero counts as absent. */
export const int: Schema = { kind: 'int32', isKeptWhenZero: false };
/** A 32-bit integer whose zero is kept. */
export const intPointer: Schema = { kind: 'int32', isKeptWhenZero: true };
/** A 64-bit integer whose zero counts as absent. */
export const long: Schema = { kind: 'int64', isKeptWhenZero: false };
/** A 64-bit integer whose zero is kept. */
export const longPointer: Schema = { kind: 'int64', isKeptWhenZero: true };
/** A flag whose false counts as absent. */
export const flag: Schema = { kind: 'bool', isKeptWhenZero: false };
/** A flag whose false is kept. */
export const flagPointer: Schema = { kind: 'bool', isKeptWhenZero: true };
/** A number or a percentage or a name. */
export const intOrString: Schema = { kind: 'intOrString' };
/** Anything, unchecked. */
export const any: Schema = { kind: 'any' };
/** Labels, annotations, selectors. */
export const textMap: Schema = { kind: 'map', values: textPointer };

/** A type whose fields are all known. */
export function object(type: string, fields: Readonly<Record<string, Schema>>): ObjectSchema {
  return { kind: 'object', type, fields, isOpen: false, isRetainKeys: false };
}

/** A type of which only some fields are known; other fields are kept unchanged. */
export function openObject(type: string, fields: Readonly<Record<string, Schema>>): ObjectSchema {
  return { kind: 'object', type, fields, isOpen: true, isRetainKeys: false };
}

/** The same type, patched with `$retainKeys`. */
export function retainKeys(schema: ObjectSchema): ObjectSchema {
  return { ...schema, isRetainKeys: true };
}

/** A list that a strategic merge patch replaces as a whole. */
export function list(items: Schema): ListSchema {
  return { kind: 'list', items, merge: { kind: 'atomic' }, isNullWhenEmpty: false };
}

/** An atomic list that is written as null when empty. */
export function nullableList(items: Schema): ListSchema {
  return { ...list(items), isNullWhenEmpty: true };
}

/** A list that a strategic merge patch merges element by element; `key` identifies an element. */
export function listByKey(key: string, items: Schema): ListSchema {
  return { kind: 'list', items, merge: { kind: 'byKey', key }, isNullWhenEmpty: false };
}

/** A list of strings that a strategic merge patch treats as a set. */
export const textSet: ListSchema = {
  kind: 'list',
  items: textPointer,
  merge: { kind: 'asSet' },
  isNullWhenEmpty: false,
};
/** An atomic list of strings. */
export const textList: ListSchema = list(textPointer);

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
