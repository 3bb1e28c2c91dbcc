import { isEqual } from '@switchyard/core';
import {
  isJsonList,
  isJsonObject,
  type Json,
  type JsonObject,
  listAt,
  type MutableJsonObject,
  stringAt,
} from './json.ts';
import { badRequest, StatusError } from './status-error.ts';
import type { ListSchema, Schema } from './schema.ts';

/** Applies an RFC 6902 patch to a copy. A failing operation rejects with a 422 Status, a malformed one with 400. */
export function applyJsonPatch(document: JsonObject, patch: Json): JsonObject {
  if (!isJsonList(patch)) throw badRequest('json: cannot unmarshal object into Go value of type jsonpatch.Patch');
  let result: Json = document;
  for (const operation of patch) result = applyOperation(result, operation);
  if (!isJsonObject(result)) throw rejected();
  return result;
}

function applyOperation(document: Json, operation: Json): Json {
  const path = pointer(stringAt(operation, 'path'));
  const value = isJsonObject(operation) ? operation['value'] : undefined;
  switch (stringAt(operation, 'op')) {
    case 'add':
      return change(document, path, { kind: 'add', value: value ?? null });
    case 'replace':
      read(document, path);
      return change(document, path, { kind: 'replace', value: value ?? null });
    case 'remove':
      return change(document, path, { kind: 'remove' });
    case 'test':
      if (!isEqual(readOrNull(document, path), value ?? null)) throw rejected();
      return document;
    case 'copy':
      return change(document, path, { kind: 'add', value: read(document, pointer(stringAt(operation, 'from'))) });
    case 'move': {
      const from = pointer(stringAt(operation, 'from'));
      const moved = read(document, from);
      return change(change(document, from, { kind: 'remove' }), path, { kind: 'add', value: moved });
    }
    default:
      throw badRequest(`Unexpected kind: ${stringAt(operation, 'op')}`);
  }
}

type Change = { readonly kind: 'add' | 'replace'; readonly value: Json } | { readonly kind: 'remove' };

function change(document: Json, path: readonly string[], what: Change): Json {
  const [step, ...rest] = path;
  if (step === undefined) return what.kind === 'remove' ? null : what.value;
  if (isJsonList(document)) return changeList(document, step, rest, what);
  if (!isJsonObject(document)) throw rejected();
  const old = document[step];
  if (rest.length > 0) {
    if (old === undefined) throw rejected();
    return { ...document, [step]: change(old, rest, what) };
  }
  if (what.kind !== 'remove') return { ...document, [step]: what.value };
  if (old === undefined) throw rejected();
  const { [step]: _removed, ...others } = document;
  return others;
}

function changeList(list: readonly Json[], step: string, rest: readonly string[], what: Change): Json {
  const index = step === '-' ? list.length : Number(step);
  const last = what.kind === 'add' && rest.length === 0 ? list.length : list.length - 1;
  if (!/^(?:-|0|[1-9][0-9]*)$/.test(step) || index > last) throw rejected();
  if (rest.length > 0) return list.toSpliced(index, 1, change(list[index] ?? null, rest, what));
  if (what.kind === 'remove') return list.toSpliced(index, 1);
  return list.toSpliced(index, what.kind === 'add' ? 0 : 1, what.value);
}

function read(document: Json, path: readonly string[]): Json {
  let value: Json | undefined = document;
  for (const step of path) {
    value = isJsonList(value) ? value[Number(step)] : isJsonObject(value) ? value[step] : undefined;
    if (value === undefined) throw rejected();
  }
  return value;
}

function readOrNull(document: Json, path: readonly string[]): Json {
  try {
    return read(document, path);
  } catch {
    return null;
  }
}

function pointer(text: string): readonly string[] {
  if (text === '') return [];
  return text
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function rejected(): StatusError {
  const message = 'the server rejected our request due to an error in our request';
  return new StatusError({ code: 422, reason: 'Invalid', message, details: {} });
}

/** Applies an RFC 7386 merge patch to a copy: null removes, objects merge, everything else replaces. */
export function applyMergePatch(document: JsonObject, patch: JsonObject): JsonObject {
  const result: MutableJsonObject = { ...document };
  for (const [key, change] of Object.entries(patch)) {
    if (change === null) delete result[key];
    else result[key] = merged(result[key], change);
  }
  return result;
}

function merged(old: Json | undefined, change: Json): Json {
  if (!isJsonObject(change)) return change;
  return applyMergePatch(isJsonObject(old) ? old : {}, change);
}

const orderPrefix = '$setElementOrder/';
const deletePrefix = '$deleteFromPrimitiveList/';

/**
 * Applies a strategic merge patch to a copy. `schema` defines which lists merge and by which key; fields outside it
 * follow RFC 7386. Supports `$patch`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…` and `$retainKeys`.
 */
export function applyStrategicMergePatch(
  document: JsonObject,
  patch: JsonObject,
  schema: Schema | undefined,
): JsonObject {
  const directive = patch['$patch'];
  if (directive === 'replace') return withoutDirectives(patch);
  if (directive === 'delete') return {};
  if (directive !== undefined && directive !== 'merge')
    throw badRequest(`invalid value for $patch: ${String(directive)}`);
  const result: MutableJsonObject = { ...document };
  applyRetainKeys(result, patch);
  for (const field of fieldsOf(patch)) {
    const inner = schemaOfField(schema, field);
    const change = patch[field];
    if (change === null) delete result[field];
    else if (inner?.kind === 'list' && inner.merge.kind !== 'atomic') {
      result[field] = mergeList(inner, listAt(result, field), patch, field);
    } else if (isJsonObject(change)) {
      const old = result[field];
      result[field] = applyStrategicMergePatch(isJsonObject(old) ? old : {}, change, inner);
      if (change['$patch'] === 'delete') delete result[field];
    } else if (change !== undefined) result[field] = change;
  }
  return result;
}

/** Returns the names of the fields that a patch or its directives concern. */
function fieldsOf(patch: JsonObject): ReadonlySet<string> {
  const fields = new Set<string>();
  for (const key of Object.keys(patch)) {
    if (key.startsWith(orderPrefix)) fields.add(key.slice(orderPrefix.length));
    else if (key.startsWith(deletePrefix)) fields.add(key.slice(deletePrefix.length));
    else if (!key.startsWith('$')) fields.add(key);
  }
  return fields;
}

function applyRetainKeys(result: MutableJsonObject, patch: JsonObject): void {
  const keys = patch['$retainKeys'];
  if (!isJsonList(keys)) return;
  for (const field of Object.keys(result)) if (!keys.includes(field)) delete result[field];
}

function mergeList(schema: ListSchema, old: readonly Json[], patch: JsonObject, field: string): Json {
  const items = listAt(patch, field);
  if (items.some((item) => isJsonObject(item) && item['$patch'] === 'replace')) {
    return items.filter((item) => !isJsonObject(item) || item['$patch'] !== 'replace');
  }
  const isSame = identityOf(schema);
  const kept = withoutDeleted(old, items, listAt(patch, `${deletePrefix}${field}`), isSame);
  const changes = items.filter((item) => !isJsonObject(item) || item['$patch'] === undefined);
  const merged = [...kept];
  for (const item of changes) {
    const index = merged.findIndex((candidate) => isSame(candidate, item));
    if (index === -1) merged.push(isJsonObject(item) ? mergeItem({}, item, schema) : item);
    else merged[index] = mergeItem(merged[index] ?? null, item, schema);
  }
  const order = listAt(patch, `${orderPrefix}${field}`);
  return orderMerged(merged, order.length > 0 ? order : changes, old, isSame);
}

function withoutDeleted(
  old: readonly Json[],
  items: readonly Json[],
  primitives: readonly Json[],
  isSame: (a: Json, b: Json) => boolean,
): readonly Json[] {
  const deleted = items.filter((item) => isJsonObject(item) && item['$patch'] === 'delete');
  return old.filter(
    (item) => !deleted.some((gone) => isSame(item, gone)) && !primitives.some((gone) => isEqual(item, gone)),
  );
}

function mergeItem(old: Json, change: Json, schema: ListSchema): Json {
  return isJsonObject(old) && isJsonObject(change) ? applyStrategicMergePatch(old, change, schema.items) : change;
}

function identityOf(schema: ListSchema): (a: Json, b: Json) => boolean {
  const { merge } = schema;
  if (merge.kind !== 'byKey') return isEqual;
  return (a, b) => isJsonObject(a) && isJsonObject(b) && isEqual(a[merge.key], b[merge.key]);
}

function schemaOfField(schema: Schema | undefined, field: string): Schema | undefined {
  if (schema?.kind === 'object') return schema.fields[field];
  return schema?.kind === 'map' ? schema.values : undefined;
}

function withoutDirectives(patch: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(patch).filter(([key]) => !key.startsWith('$')));
}

type IsSame = (a: Json, b: Json) => boolean;

/**
 * Orders a merged list: elements in the patch come in the patch's order. The others keep their old order, each before the
 * same patched elements as in the old list.
 */
function orderMerged(
  merged: readonly Json[],
  patchOrder: readonly Json[],
  oldOrder: readonly Json[],
  isSame: IsSame,
): readonly Json[] {
  const placeOf = (item: Json): number => oldOrder.findIndex((old) => isSame(old, item));
  const named = patchOrder.flatMap((entry) => merged.find((item) => isSame(item, entry)) ?? []);
  const others = merged.filter((item) => !named.includes(item));
  const result: Json[] = [];
  for (const item of named) {
    const isBefore = (other: Json): boolean => placeOf(other) !== -1 && placeOf(other) < placeOf(item);
    while (others[0] !== undefined && isBefore(others[0])) result.push(...others.splice(0, 1));
    result.push(item);
  }
  return [...result, ...others];
}
