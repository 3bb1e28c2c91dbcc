/** Any JSON value. Values in the store are never changed in place, so parts may be shared. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** A JSON object. An absent key reads as undefined. */
export interface JsonObject {
  readonly [key: string]: Json;
}

/** A JSON object under construction, owned by the function that made it. */
export type MutableJsonObject = { [key: string]: Json };

/** The object without fields. */
const emptyObject: JsonObject = {};

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isJsonList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** The value under nested keys, or undefined when any step is missing. */
export function valueAt(object: Json | undefined, ...path: readonly string[]): Json | undefined {
  let value: Json | undefined = object;
  for (const key of path) {
    if (!isJsonObject(value)) return undefined;
    value = value[key];
  }
  return value;
}

/** The object under nested keys; an empty one when absent or something else. */
export function objectAt(object: Json | undefined, ...path: readonly string[]): JsonObject {
  const value = valueAt(object, ...path);
  return isJsonObject(value) ? value : emptyObject;
}

/** The list under nested keys; an empty one when absent or something else. */
export function listAt(object: Json | undefined, ...path: readonly string[]): readonly Json[] {
  const value = valueAt(object, ...path);
  return isJsonList(value) ? value : [];
}

/** The string under nested keys; '' when absent or something else. */
export function stringAt(object: Json | undefined, ...path: readonly string[]): string {
  const value = valueAt(object, ...path);
  return typeof value === 'string' ? value : '';
}

/** The number under nested keys; undefined when absent or something else. */
export function numberAt(object: Json | undefined, ...path: readonly string[]): number | undefined {
  const value = valueAt(object, ...path);
  return typeof value === 'number' ? value : undefined;
}

/** `object` with the fields of `changes`; a field whose change is undefined is removed. */
export function withFields(object: JsonObject, changes: Readonly<Record<string, Json | undefined>>): JsonObject {
  const result: MutableJsonObject = { ...object };
  for (const [key, value] of Object.entries(changes)) {
    if (value === undefined) delete result[key];
    else result[key] = value;
  }
  return result;
}
