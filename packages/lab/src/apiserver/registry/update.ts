import {
  isJsonObject,
  jsonEqual,
  type JsonObject,
  listAt,
  type MutableJsonObject,
  numberAt,
  objectAt,
  stringAt,
  withFields,
} from '../json.ts';
import { apiVersionOf, type ResourceDefinition } from '../resource.ts';
import { badRequest, conflict, invalid, notFound } from '../status-error.ts';
import { type StoredObject, storedObject } from '../store/stored-object.ts';
import { decodeBody } from './decode-body.ts';
import type { ObjectChange, ObjectName, RegistryContext, WriteOptions, WriteResult } from './registry.ts';
import { resourceContext } from './registry-context.ts';
import { validateMeta } from './validate-meta.ts';

interface Update {
  readonly name: ObjectName;
  readonly change: ObjectChange;
  readonly options: WriteOptions;
}

/** Changes one object. */
export function updateObject(context: RegistryContext, resource: ResourceDefinition, update: Update): WriteResult {
  const { name, change, options } = update;
  const current = context.store.get(resource, name.namespace, name.name);
  if (current === undefined) throw notFound(resource, name.name);
  const typed = { kind: resource.kind, apiVersion: apiVersionOf(resource), ...current.value };
  const wanted = change.apply(typed);
  const decoded = decodeBody(resource, wanted, options.fieldValidation);
  checkIdentity(resource, current, decoded.value);
  const inner = resourceContext(context);
  const merged = mergeParts(resource, current, decoded.value, change.part);
  const next =
    change.part === 'status' ? resource.setStatusDefaults(merged) : resource.setDefaults(merged, current.value, inner);
  const object = withGeneration(resource, current.value, next);
  const errors =
    change.part === 'status'
      ? []
      : [...validateMeta(resource, object), ...resource.validate(object, current.value, inner)];
  if (errors.length > 0) throw invalid(resource, name.name, errors);
  return { object: storeChange(context, resource, { current, object }, options), warnings: decoded.warnings };
}

function storeChange(
  context: RegistryContext,
  resource: ResourceDefinition,
  change: { readonly current: StoredObject; readonly object: JsonObject },
  options: WriteOptions,
): StoredObject {
  const { current, object } = change;
  const candidate = storedObject(resource, object, current.resourceVersion);
  if (options.isDryRun === true) return candidate;
  const isWaiting = stringAt(object, 'metadata', 'deletionTimestamp') !== '';
  const isFree = listAt(object, 'metadata', 'finalizers').length === 0;
  const isGraceOver = (numberAt(object, 'metadata', 'deletionGracePeriodSeconds') ?? 0) === 0;
  const hadFinalizers = listAt(current.value, 'metadata', 'finalizers').length > 0;
  if (isWaiting && isFree && isGraceOver && hadFinalizers) return context.store.remove(resource, candidate);
  return jsonEqual(candidate.value, current.value) ? current : context.store.put(resource, object);
}

/** Throws unless the body's version, uid and name are those of the object. */
function checkIdentity(resource: ResourceDefinition, current: StoredObject, object: JsonObject): void {
  const version = stringAt(object, 'metadata', 'resourceVersion');
  const uid = stringAt(object, 'metadata', 'uid');
  const currentUid = stringAt(current.value, 'metadata', 'uid');
  const name = stringAt(object, 'metadata', 'name');
  if (name !== '' && name !== current.name) {
    throw badRequest(`the name of the object (${name}) does not match the name on the URL (${current.name})`);
  }
  if (uid !== '' && uid !== currentUid) {
    const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${currentUid}`;
    throw conflict(resource, current.name, why);
  }
  if (version !== '' && version !== '0' && version !== String(current.resourceVersion)) {
    throw conflict(resource, current.name);
  }
}

/** Returns the new state of the written part with the old state of the rest. */
function mergeParts(
  resource: ResourceDefinition,
  current: StoredObject,
  wanted: JsonObject,
  part: ObjectChange['part'],
): JsonObject {
  const metadata = mergeMetadata(objectAt(current.value, 'metadata'), objectAt(wanted, 'metadata'));
  if (part === 'status') return withFields({ ...current.value, metadata }, { status: objectAt(wanted, 'status') });
  const { kind: _kind, apiVersion: _version, ...rest } = wanted;
  if (!resource.subresources.includes('status')) return { ...rest, metadata };
  return withFields({ ...rest, metadata }, { status: current.value['status'] });
}

/** Fields of `metadata` that only the server writes. */
const systemFields = [
  'name',
  'generateName',
  'namespace',
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
] as const;

function mergeMetadata(current: JsonObject, wanted: JsonObject): JsonObject {
  const result: MutableJsonObject = { ...wanted };
  for (const field of systemFields) {
    const value = current[field];
    if (value === undefined) delete result[field];
    else result[field] = value;
  }
  // Clients may not add finalizers to an object that is being deleted.
  if (current['deletionTimestamp'] !== undefined && isJsonObject(result)) {
    const old = listAt(current, 'finalizers');
    const kept = listAt(wanted, 'finalizers').filter((finalizer) => old.includes(finalizer));
    if (kept.length > 0) result['finalizers'] = kept;
    else delete result['finalizers'];
  }
  return result;
}

function withGeneration(resource: ResourceDefinition, current: JsonObject, next: JsonObject): JsonObject {
  if (!resource.hasGeneration || jsonEqual(countedPart(current), countedPart(next))) return next;
  const generation = (numberAt(current, 'metadata', 'generation') ?? 0) + 1;
  return { ...next, metadata: { ...objectAt(next, 'metadata'), generation } };
}

/** Returns the fields that `metadata.generation` counts. Binding a pod to a node does not change its generation. */
function countedPart(object: JsonObject): JsonObject {
  const { metadata: _metadata, status: _status, ...rest } = object;
  const spec = rest['spec'];
  if (!isJsonObject(spec) || spec['nodeName'] === undefined) return rest;
  return { ...rest, spec: withFields(spec, { nodeName: undefined }) };
}
