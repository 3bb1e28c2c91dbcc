import { isJsonObject, type Json, type JsonObject, type MutableJsonObject } from '../json.ts';

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
