import {
  isJsonList,
  isJsonObject,
  type Json,
  jsonEqual,
  type JsonObject,
  listAt,
  type MutableJsonObject,
} from '../json.ts';
import type { ListSchema, Schema } from '../schema/schema.ts';
import { badRequest } from '../status-error.ts';
import { orderMerged } from './element-order.ts';

const orderPrefix = '$setElementOrder/';
const deletePrefix = '$deleteFromPrimitiveList/';

/**
 * Applies a strategic merge patch to a copy. `schema` defines which lists merge and by which key; fields
 * outside it follow RFC 7386. Supports `$patch`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`
 * and `$retainKeys`.
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
    (item) => !deleted.some((gone) => isSame(item, gone)) && !primitives.some((gone) => jsonEqual(item, gone)),
  );
}

function mergeItem(old: Json, change: Json, schema: ListSchema): Json {
  return isJsonObject(old) && isJsonObject(change) ? applyStrategicMergePatch(old, change, schema.items) : change;
}

function identityOf(schema: ListSchema): (a: Json, b: Json) => boolean {
  const { merge } = schema;
  if (merge.kind !== 'byKey') return jsonEqual;
  return (a, b) => isJsonObject(a) && isJsonObject(b) && jsonEqual(a[merge.key], b[merge.key]);
}

function schemaOfField(schema: Schema | undefined, field: string): Schema | undefined {
  if (schema?.kind === 'object') return schema.fields[field];
  return schema?.kind === 'map' ? schema.values : undefined;
}

function withoutDirectives(patch: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(patch).filter(([key]) => !key.startsWith('$')));
}
