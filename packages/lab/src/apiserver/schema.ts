import { isJsonList, isJsonObject, type Json, type JsonObject, type MutableJsonObject } from './json.ts';

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

// Scalars. The zero of those without `Pointer` counts as absent.
export const text: Schema = { kind: 'string', isKeptWhenZero: false };
export const textPointer: Schema = { kind: 'string', isKeptWhenZero: true };
export const int: Schema = { kind: 'int32', isKeptWhenZero: false };
export const intPointer: Schema = { kind: 'int32', isKeptWhenZero: true };
export const long: Schema = { kind: 'int64', isKeptWhenZero: false };
export const longPointer: Schema = { kind: 'int64', isKeptWhenZero: true };
export const flag: Schema = { kind: 'bool', isKeptWhenZero: false };
export const flagPointer: Schema = { kind: 'bool', isKeptWhenZero: true };
/** A number or a percentage or a name. */
export const intOrString: Schema = { kind: 'intOrString' };
export const any: Schema = { kind: 'any' };
/** Labels, annotations, selectors. */
export const textMap: Schema = { kind: 'map', values: textPointer };

/** Consecutive fields of one type, in this order. */
export function fields(schema: Schema, ...names: readonly string[]): ObjectSchema['fields'] {
  return Object.fromEntries(names.map((name) => [name, schema]));
}

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

export const objectMeta: ObjectSchema = object('ObjectMeta', {
  ...fields(text, 'name', 'generateName', 'namespace', 'selfLink', 'uid', 'resourceVersion'),
  generation: long,
  creationTimestamp: text,
  deletionTimestamp: text,
  deletionGracePeriodSeconds: longPointer,
  labels: textMap,
  annotations: textMap,
  ownerReferences: listByKey(
    'uid',
    object('OwnerReference', {
      ...fields(text, 'apiVersion', 'kind', 'name', 'uid'),
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
  ...fields(text, 'lastProbeTime', 'lastHeartbeatTime', 'lastUpdateTime', 'lastTransitionTime', 'reason', 'message'),
});

export const labelSelector: ObjectSchema = object('LabelSelector', {
  matchLabels: textMap,
  matchExpressions: list(object('LabelSelectorRequirement', { key: text, operator: text, values: textList })),
});

export const objectReference: ObjectSchema = object('ObjectReference', {
  ...fields(text, 'kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'),
});

export function topLevel(type: string, fields: ObjectSchema['fields']): ObjectSchema {
  return object(type, { kind: text, apiVersion: text, metadata: objectMeta, ...fields });
}

/** A reference to an object by name in the same namespace. */
export const localReference: ObjectSchema = object('LocalObjectReference', { name: textPointer });

export interface Decoded {
  /** Known fields in the schema's order, without values that count as absent. */
  readonly value: JsonObject;
  /** Paths of dropped fields, for example `spec.prots`, `spec.ports[0].prot`. */
  readonly unknownFields: readonly string[];
  /** Go's message about the first value of a wrong type; undefined if all types are right. */
  readonly typeError: string | undefined;
}

interface Findings {
  readonly unknownFields: string[];
  typeError: string | undefined;
}

/** Decodes `body` as a Go API server would: into its struct and back to JSON. */
export function decode(schema: ObjectSchema, body: JsonObject): Decoded {
  const findings: Findings = { unknownFields: [], typeError: undefined };
  const value = decodeObject(schema, body, { path: '', goPath: '', owner: '' }, findings);
  return { value, unknownFields: findings.unknownFields, typeError: findings.typeError };
}

/** Position of the decoder: `path` with indexes, `goPath` without, `owner` the type that holds the field. */
interface Place {
  readonly path: string;
  readonly goPath: string;
  readonly owner: string;
}

function decodeObject(schema: ObjectSchema, body: JsonObject, place: Place, findings: Findings): JsonObject {
  const result: MutableJsonObject = {};
  for (const name in schema.fields) {
    const field = schema.fields[name];
    const value = body[name];
    if (field === undefined) continue;
    if (value === undefined || value === null) {
      if (field.kind === 'list' && field.isNullWhenEmpty) result[name] = null;
      continue;
    }
    const decoded = decodeValue(field, value, inner(place, name, schema.type), findings);
    if (decoded !== undefined) result[name] = decoded;
  }
  for (const name in body) {
    if (Object.hasOwn(schema.fields, name)) continue;
    const value = body[name];
    if (!schema.isOpen) findings.unknownFields.push(joined(place.path, name));
    else if (value !== undefined && value !== null) result[name] = value;
  }
  return result;
}

/** Returns the decoded value; undefined if it counts as absent. */
function decodeValue(schema: Schema, value: Json, place: Place, findings: Findings): Json | undefined {
  switch (schema.kind) {
    case 'any':
      return value;
    case 'string':
      if (typeof value !== 'string') return wrong('string', value, place, findings);
      return value === '' && !schema.isKeptWhenZero ? undefined : value;
    case 'int32':
    case 'int64':
      if (typeof value !== 'number' || !Number.isInteger(value)) return wrong(schema.kind, value, place, findings);
      return value === 0 && !schema.isKeptWhenZero ? undefined : value;
    case 'bool':
      if (typeof value !== 'boolean') return wrong('bool', value, place, findings);
      return !value && !schema.isKeptWhenZero ? undefined : value;
    case 'intOrString':
      return typeof value === 'number' || typeof value === 'string'
        ? value
        : wrong('intstr.IntOrString', value, place, findings);
    case 'object':
      if (!isJsonObject(value)) return wrong(schema.type, value, place, findings);
      return decodeObject(schema, value, place, findings);
    case 'map':
      return decodeMap(schema.values, value, place, findings);
    case 'list': {
      if (!isJsonList(value)) return wrong(`[]${goTypeName(schema.items)}`, value, place, findings);
      if (value.length === 0) return schema.isNullWhenEmpty ? null : undefined;
      return value.flatMap((item, index) => {
        const itemPlace = { ...place, path: `${place.path}[${index}]` };
        const decoded = decodeValue(keepingZero(schema.items), item, itemPlace, findings);
        return decoded === undefined ? [] : [decoded];
      });
    }
  }
}

function decodeMap(values: Schema, value: Json, place: Place, findings: Findings): Json | undefined {
  if (!isJsonObject(value)) return wrong(`map[string]${goTypeName(values)}`, value, place, findings);
  const result: MutableJsonObject = {};
  let isEmpty = true;
  for (const name of Object.keys(value).sort()) {
    const item = value[name];
    // A null in a map of strings reads as the empty string.
    const decoded =
      item === undefined || item === null
        ? ''
        : decodeValue(values, item, { ...place, path: joined(place.path, name) }, findings);
    if (decoded === undefined) continue;
    result[name] = decoded;
    isEmpty = false;
  }
  return isEmpty ? undefined : result;
}

function keepingZero(schema: Schema): Schema {
  return 'isKeptWhenZero' in schema && !schema.isKeptWhenZero ? { ...schema, isKeptWhenZero: true } : schema;
}

function wrong(goType: string, value: Json, place: Place, findings: Findings): undefined {
  const found = Array.isArray(value) ? 'array' : isJsonObject(value) ? 'object' : jsonTypeName(value);
  const field = place.owner === '' ? place.goPath : `${place.owner}.${place.goPath}`;
  findings.typeError ??= `json: cannot unmarshal ${found} into Go struct field ${field} of type ${goType}`;
  return undefined;
}

function jsonTypeName(value: Json): string {
  if (typeof value === 'boolean') return 'bool';
  return typeof value;
}

function goTypeName(schema: Schema): string {
  if (schema.kind === 'object') return `v1.${schema.type}`;
  return schema.kind;
}

function inner(place: Place, name: string, owner: string): Place {
  return { path: joined(place.path, name), goPath: joined(place.goPath, name), owner };
}

function joined(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}
