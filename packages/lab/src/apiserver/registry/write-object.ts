import { millis, isEqual } from '@switchyard/core';
import { apiTime } from '../../workloads/facts.ts';
import { randomUUID } from 'node:crypto';
import { nameSuffix } from '../../workloads/owned-pods.ts';
import {
  isJsonObject,
  type JsonObject,
  listAt,
  type MutableJsonObject,
  numberAt,
  objectAt,
  stringAt,
  withFields,
} from '../json.ts';
import { apiVersionOf, type ResourceContext, type ResourceDefinition } from '../resource.ts';
import { namespaces, nodes } from '../resources/cluster-kinds.ts';
import {
  alreadyExists,
  badRequest,
  conflict,
  type FieldError,
  invalid,
  invalidField,
  notFound,
  requiredField,
  StatusError,
} from '../status-error.ts';
import { storedObject, type StoredObject } from '../store.ts';
import type { ObjectChange, ObjectName, RegistryContext, WriteOptions, WriteResult } from './registry.ts';
import { decode } from '../schema.ts';

interface Creation {
  readonly namespace: string;
  readonly body: JsonObject;
  readonly options: WriteOptions;
}

export function createObject(context: RegistryContext, resource: ResourceDefinition, creation: Creation): WriteResult {
  const { namespace, options } = creation;
  const decoded = decodeBody(resource, creation.body, options.fieldValidation);
  checkNamespace(context, resource, namespace, decoded.value);
  const metadata = newMetadata(context, resource, namespace, objectAt(decoded.value, 'metadata'));
  const withStatus =
    resource.initialStatus === undefined
      ? decoded.value
      : withFields(decoded.value, { status: resource.initialStatus(decoded.value) });
  const inner = resourceContext(context);
  const defaulted = resource.setDefaults({ ...withStatus, metadata }, undefined, inner);
  const object = resource.setStatusDefaults(defaulted);
  const name = stringAt(object, 'metadata', 'name');
  const errors = [...validateMeta(resource, object), ...resource.validate(object, undefined, inner)];
  if (errors.length > 0) throw invalid(resource, name, errors);
  if (context.store.get(resource, namespace, name) !== undefined) throw alreadyExists(resource, name);
  const stored =
    options.isDryRun === true ? storedObject(resource, object, undefined) : context.store.put(resource, object);
  return { object: stored, warnings: decoded.warnings };
}

function newMetadata(
  context: RegistryContext,
  resource: ResourceDefinition,
  namespace: string,
  given: JsonObject,
): JsonObject {
  const generateName = stringAt(given, 'generateName');
  const name = stringAt(given, 'name') || (generateName === '' ? '' : generateName + nameSuffix(context.random));
  const { deletionTimestamp: _d, deletionGracePeriodSeconds: _g, generation: _n, ...rest } = given;
  const metadata: MutableJsonObject = { ...rest, name, uid: randomUUID(), creationTimestamp: timestamp(context) };
  if (resource.isNamespaced) metadata['namespace'] = namespace;
  else delete metadata['namespace'];
  if (resource.hasGeneration) metadata['generation'] = 1;
  return metadata;
}

function checkNamespace(
  context: RegistryContext,
  resource: ResourceDefinition,
  namespace: string,
  object: JsonObject,
): void {
  if (!resource.isNamespaced) return;
  const given = stringAt(object, 'metadata', 'namespace');
  if (given !== '' && given !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  const found = context.store.get(namespaces, '', namespace);
  if (found === undefined) throw notFound(namespaces, namespace);
  if (stringAt(found.value, 'metadata', 'deletionTimestamp') === '') return;
  const name = stringAt(object, 'metadata', 'name');
  const message = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const cause = {
    reason: 'NamespaceTerminating',
    message: `namespace ${namespace} is being terminated`,
    field: 'metadata.namespace',
  };
  throw new StatusError({
    code: 403,
    reason: 'Forbidden',
    message: `${resource.plural} "${name}" is forbidden: ${message}`,
    details: { name, kind: resource.plural, causes: [cause] },
  });
}

interface Update {
  readonly name: ObjectName;
  readonly change: ObjectChange;
  readonly options: WriteOptions;
}

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
  return isEqual(candidate.value, current.value) ? current : context.store.put(resource, object);
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
  if (!resource.hasGeneration || isEqual(countedPart(current), countedPart(next))) return next;
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

/** `body` with known fields only, and warnings about the others; wrong types or kinds reject with a 400 Status. */
function decodeBody(
  resource: ResourceDefinition,
  body: JsonObject,
  fieldValidation: WriteOptions['fieldValidation'],
): { readonly value: JsonObject; readonly warnings: readonly string[] } {
  const apiVersion = apiVersionOf(resource);
  const kind = body['kind'] ?? resource.kind;
  const version = body['apiVersion'] ?? apiVersion;
  if (kind !== resource.kind || version !== apiVersion) {
    throw badRequest(
      `the API version in the data (${String(version)}, Kind=${String(kind)}) does not match the expected API version (${apiVersion}, Kind=${resource.kind})`,
    );
  }
  const { value, unknownFields, typeError } = decode(resource.schema, body);
  const prefix = `${resource.kind} in version "${resource.version}" cannot be handled as a ${resource.kind}`;
  if (typeError !== undefined) throw badRequest(`${prefix}: ${typeError}`);
  const texts = unknownFields.map((field) => `unknown field "${field}"`);
  if (texts.length > 0 && fieldValidation === 'Strict') {
    throw badRequest(`${prefix}: strict decoding error: ${texts.join(', ')}`);
  }
  return { value, warnings: fieldValidation === 'Warn' ? texts : [] };
}

/** Returns the context of a kind's defaulting and validation. */
function resourceContext(context: RegistryContext): ResourceContext {
  return {
    now: context.clock.now(),
    allocations: context.allocations,
    findNode: (name) => context.store.get(nodes, '', name)?.value,
  };
}

/** Returns the current time in the form of the API: RFC 3339 in whole seconds. */
export function timestamp(context: RegistryContext, secondsLater = 0): string {
  return apiTime(millis(context.clock.now() + secondsLater * 1000));
}

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const qualifiedName = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;

const labelText =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an " +
  "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const subdomainText =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end " +
  "with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const labelValueText =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with " +
  "an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is " +
  "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/** Returns the errors in an object's name and labels. */
function* validateMeta(resource: ResourceDefinition, object: JsonObject): Generator<FieldError, void> {
  const name = stringAt(object, 'metadata', 'name');
  if (name === '') yield requiredField('metadata.name', 'name or generateName is required');
  else if (resource.nameRule === 'label' && (!label.test(name) || name.length > 63)) {
    yield invalidField('metadata.name', name, name.length > 63 ? 'must be no more than 63 bytes' : labelText);
  } else if (resource.nameRule === 'subdomain' && (!subdomain.test(name) || name.length > 253)) {
    yield invalidField('metadata.name', name, name.length > 253 ? 'must be no more than 253 bytes' : subdomainText);
  }
  for (const [key, value] of Object.entries(objectAt(object, 'metadata', 'labels'))) {
    const short = key.slice(key.lastIndexOf('/') + 1);
    if (!qualifiedName.test(short) || short.length > 63) {
      yield invalidField('metadata.labels', key, 'name part must be a valid label key');
    }
    const text = String(value);
    if (text.length > 63) yield invalidField('metadata.labels', text, 'must be no more than 63 bytes');
    else if (text !== '' && !qualifiedName.test(text)) {
      yield invalidField('metadata.labels', text, labelValueText);
    }
  }
}
