/** A JSON object. */
export type JsonObject = { readonly [field: string]: unknown };

/**
 * Applies a strategic merge patch as `kubectl patch` does to the fields that suggestions change: objects are merged, null removes a field, lists whose
 * elements have names are merged by name, and other lists are replaced.
 */
export function applyPatch<T extends object>(object: T, patch: JsonObject): T {
  const merged: Record<string, unknown> = Object.fromEntries(Object.entries(object));
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) delete merged[field];
    else merged[field] = mergedValue(merged[field], value);
  }
  return merged as T; // a patch keeps the shape
}

function mergedValue(current: unknown, value: unknown): unknown {
  if (Array.isArray(value)) return isNamed(value) ? mergedList(Array.isArray(current) ? current : [], value) : value;
  return isObject(value) ? applyPatch(isObject(current) ? current : {}, value) : value;
}

interface Named extends JsonObject {
  readonly name: string;
}

function mergedList(current: readonly unknown[], patches: readonly Named[]): readonly unknown[] {
  const patchOf = (one: unknown): Named | undefined =>
    isObject(one) ? patches.find(({ name }) => name === one['name']) : undefined;
  const known = current.map((one) => {
    const patch = patchOf(one);
    return patch === undefined ? one : mergedValue(one, patch);
  });
  const added = patches.filter((patch) => !current.some((one) => patchOf(one) === patch));
  return [...known, ...added];
}

function isNamed(list: readonly unknown[]): list is readonly Named[] {
  return list.length > 0 && list.every((one) => isObject(one) && typeof one['name'] === 'string');
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
