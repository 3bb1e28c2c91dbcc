import { isJsonList, isJsonObject, type Json, type JsonObject, type MutableJsonObject } from '../json.ts';
import type { ObjectSchema, Schema } from './schema.ts';

/** A decoded body. */
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
