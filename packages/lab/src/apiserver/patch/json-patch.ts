import { isJsonList, isJsonObject, type Json, jsonEqual, type JsonObject, stringAt } from '../json.ts';
import { badRequest, StatusError } from '../status-error.ts';

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
      if (!jsonEqual(readOrNull(document, path), value ?? null)) throw rejected();
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
