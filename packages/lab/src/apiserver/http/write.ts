import { type Json, type JsonObject, listAt, numberAt, objectAt, stringAt, withFields } from '../json.ts';
import { applyJsonPatch } from '../patch/json-patch.ts';
import { applyMergePatch } from '../patch/merge-patch.ts';
import { applyStrategicMergePatch } from '../patch/strategic-merge.ts';
import type { DeletionOptions, ObjectChange, Registry, WriteOptions, WriteResult } from '../registry/registry.ts';
import type { ResourceDefinition } from '../resource.ts';
import type { Schema } from '../schema/schema.ts';
import { badRequest, unsupportedMediaType } from '../status-error.ts';
import type { Store } from '../store/store.ts';
import type { StoredObject } from '../store/stored-object.ts';
import { parseBody, parseJson, type RequestBody } from './body.ts';
import type { RequestInfo } from './request-info.ts';
import { scaleBody, scaleOf, scaleSchema } from './scale.ts';

/** A request that writes. */
export interface WriteRequest {
  readonly info: RequestInfo;
  readonly query: URLSearchParams;
  readonly body: RequestBody;
}

/** What a write answers: an object, or a ready document (Status, Scale, list). */
export type WriteAnswer =
  | {
      readonly kind: 'object';
      readonly status: 200 | 201;
      readonly object: StoredObject;
      readonly warnings: readonly string[];
    }
  | { readonly kind: 'document'; readonly status: 200 | 201; readonly document: JsonObject };

/** POST on a collection. */
export function handleCreate(registry: Registry, request: WriteRequest): WriteAnswer {
  const { info, query } = request;
  const body = parseBody(request.body);
  const result = registry.create(info.resource, info.namespace, body, writeOptions(query, body));
  return { kind: 'object', status: 201, ...result };
}

/** PUT on an object or a subresource. */
export function handleReplace(registry: Registry, request: WriteRequest): WriteAnswer {
  const body = parseBody(request.body);
  return change(registry, request, { apply: () => body, document: body });
}

/** PATCH on an object or a subresource. */
export function handlePatch(registry: Registry, request: WriteRequest): WriteAnswer {
  const patch = patchFunction(request.body, request.info);
  return change(registry, request, { apply: patch, document: {} });
}

/** DELETE on an object. */
export function handleDelete(registry: Registry, request: WriteRequest): WriteAnswer {
  const { info, query } = request;
  const { resource } = info;
  const name = { namespace: info.namespace, name: info.name ?? '' };
  const result = registry.delete(resource, name, deletionOptions(request.body, query));
  if (!result.isGone || resource.returnsDeleted) {
    return { kind: 'object', status: 200, object: result.object, warnings: [] };
  }
  const uid = stringAt(result.object.value, 'metadata', 'uid');
  const group: Record<string, Json> = resource.group === '' ? {} : { group: resource.group };
  const details = { name: name.name, ...group, kind: resource.plural, uid };
  const document = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
  return { kind: 'document', status: 200, document };
}

/** DELETE on a collection: everything that `matches`. The answer is a list of what was there. */
export function handleDeleteCollection(
  registry: Registry,
  store: Store,
  request: WriteRequest,
  matches: (object: StoredObject) => boolean,
): readonly StoredObject[] {
  const options = deletionOptions(request.body, request.query);
  const doomed = store.list(request.info.resource).items.filter(matches);
  return doomed.map(
    ({ namespace, name }) => registry.delete(request.info.resource, { namespace, name }, options).object,
  );
}

interface Change {
  readonly apply: (current: JsonObject) => JsonObject;
  /** The body where it has the shape of an object; read for `dryRun`. */
  readonly document: JsonObject;
}

function change(registry: Registry, request: WriteRequest, wanted: Change): WriteAnswer {
  const { info, query } = request;
  const name = { namespace: info.namespace, name: info.name ?? '' };
  const options = writeOptions(query, wanted.document);
  if (info.subresource === 'scale') {
    const apply = (current: JsonObject): JsonObject =>
      scaleBody(current, wanted.apply(scaleOf(info.resource, current)));
    const result = registry.update(info.resource, name, { part: 'main', apply }, options);
    return { kind: 'document', status: 200, document: scaleOf(info.resource, result.object.value) };
  }
  const part: ObjectChange['part'] = info.subresource === 'status' ? 'status' : 'main';
  const result: WriteResult = registry.update(info.resource, name, { part, apply: wanted.apply }, options);
  return { kind: 'object', status: 200, ...result };
}

function patchFunction(body: RequestBody, info: RequestInfo): (current: JsonObject) => JsonObject {
  const schema: Schema = info.subresource === 'scale' ? scaleSchema : info.resource.schema;
  switch (body.contentType) {
    case 'application/json-patch+json': {
      const patch = parseJson(body);
      return (current) => applyJsonPatch(current, patch);
    }
    case 'application/merge-patch+json': {
      const patch = parseBody({ ...body, contentType: 'application/json' });
      return (current) => applyMergePatch(current, patch);
    }
    case 'application/strategic-merge-patch+json': {
      const patch = parseBody({ ...body, contentType: 'application/json' });
      return (current) => applyStrategicMergePatch(current, patch, schema);
    }
    case 'application/apply-patch+yaml':
    case 'application/apply-patch+cbor':
      throw unsupportedMediaType(
        'server-side apply is not supported by this stand-in API server; use client-side apply (kubectl apply without --server-side) ' +
          'or a JSON, merge or strategic merge patch',
      );
    default:
      throw unsupportedMediaType(
        'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, ' +
          'application/merge-patch+json, application/strategic-merge-patch+json',
      );
  }
}

function writeOptions(query: URLSearchParams, body: JsonObject): WriteOptions {
  const validation = query.get('fieldValidation') ?? '';
  const dryRun = query.getAll('dryRun');
  if (dryRun.some((value) => value !== 'All')) throw badRequest(`Invalid value: ${JSON.stringify(dryRun)}: dryRun`);
  return {
    isDryRun: dryRun.length > 0 || isDryRunBody(body),
    fieldValidation: validation === 'Strict' || validation === 'Ignore' ? validation : 'Warn',
  };
}

function isDryRunBody(body: JsonObject): boolean {
  return stringAt(body, 'kind') === 'DeleteOptions' && listAt(body, 'dryRun').includes('All');
}

function deletionOptions(body: RequestBody, query: URLSearchParams): DeletionOptions {
  const options: JsonObject = body.bytes.length === 0 ? {} : parseBody(body);
  const grace = numberAt(options, 'gracePeriodSeconds') ?? numberOf(query.get('gracePeriodSeconds'));
  return {
    gracePeriodSeconds: grace,
    propagationPolicy: stringAt(options, 'propagationPolicy') || (query.get('propagationPolicy') ?? undefined),
    isDryRun: listAt(options, 'dryRun').includes('All') || query.getAll('dryRun').includes('All'),
    uid: stringAt(options, 'preconditions', 'uid'),
    resourceVersion: stringAt(options, 'preconditions', 'resourceVersion'),
  };
}

function numberOf(text: string | null): number | undefined {
  return text === null || text === '' ? undefined : Number(text);
}

/** POST on `pods/NAME/binding`: gives the pod its node, as a scheduler does. */
export function handleBinding(registry: Registry, request: WriteRequest): WriteAnswer {
  const { info } = request;
  const node = stringAt(parseBody(request.body), 'target', 'name');
  const apply = (current: JsonObject): JsonObject =>
    withFields(current, { spec: { ...objectAt(current, 'spec'), nodeName: node } });
  const name = { namespace: info.namespace, name: info.name ?? '' };
  registry.update(info.resource, name, { part: 'main', apply });
  const document = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };
  return { kind: 'document', status: 201, document };
}

/** Whether a resource has that subresource. */
export function hasSubresource(resource: ResourceDefinition, subresource: string): boolean {
  return (
    resource.subresources.some((known) => known === subresource) ||
    (resource.plural === 'pods' && subresource === 'binding')
  );
}
