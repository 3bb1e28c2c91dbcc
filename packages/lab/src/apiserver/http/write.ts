import { type Json, type JsonObject, listAt, numberAt, objectAt, stringAt, withFields } from '../json.ts';
import { applyJsonPatch, applyMergePatch, applyStrategicMergePatch } from '../patch.ts';
import type { DeletionOptions, ObjectName, Registry, WriteOptions, WriteResult } from '../registry/registry.ts';
import type { ResourceDefinition } from '../resource.ts';
import { int, object, objectMeta, type ObjectSchema, type Schema, text } from '../schema.ts';
import { badRequest, conflict, unsupportedMediaType } from '../status-error.ts';
import { type Answer, jsonAnswer, parseBody, parseJson, type RequestBody } from './messages.ts';
import type { RequestInfo, ServerContext } from './handler.ts';
import { parseListOptions } from './list.ts';
import { renderList, renderObject, type RenderOptions } from './representation.ts';
import { selectorText } from '../resources/common.ts';

/** A request that writes. */
export interface WriteRequest {
  readonly info: RequestInfo;
  readonly query: URLSearchParams;
  readonly body: RequestBody;
  readonly render: RenderOptions;
}

/** POST on a collection. */
export function handleCreate(registry: Registry, request: WriteRequest): Answer {
  const { info, query } = request;
  const result = registry.create(info.resource, info.namespace, parseBody(request.body), writeOptions(query));
  return objectAnswer(request, 201, result);
}

/** PUT on an object or a subresource. */
export function handleReplace(registry: Registry, request: WriteRequest): Answer {
  const body = parseBody(request.body);
  return change(registry, request, () => body);
}

/** PATCH on an object or a subresource. */
export function handlePatch(registry: Registry, request: WriteRequest): Answer {
  return change(registry, request, patchFunction(request.body, request.info));
}

export function handleDelete(registry: Registry, request: WriteRequest): Answer {
  const { info, query } = request;
  const { resource } = info;
  const { object, isGone } = registry.delete(resource, nameOf(info), deletionOptions(request.body, query));
  if (!isGone || resource.returnsDeleted) return objectAnswer(request, 200, { object, warnings: [] });
  const uid = stringAt(object.value, 'metadata', 'uid');
  const group: Record<string, Json> = resource.group === '' ? {} : { group: resource.group };
  const details = { name: object.name, ...group, kind: resource.plural, uid };
  return jsonAnswer({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details });
}

/** DELETE on a collection: all objects that match the query. Answers a list of the deleted objects. */
export function handleDeleteCollection({ registry, store }: ServerContext, request: WriteRequest): Answer {
  const { resource } = request.info;
  const { matches } = parseListOptions(request.query, request.info);
  const options = deletionOptions(request.body, request.query);
  const matching = store.list(resource).items.filter(matches);
  const gone = matching.map(({ namespace, name }) => registry.delete(resource, { namespace, name }, options).object);
  const meta = { resourceVersion: String(store.resourceVersion) };
  return { status: 200, body: renderList(resource, gone, meta, request.render) };
}

function objectAnswer({ render }: WriteRequest, status: number, { object, warnings }: WriteResult): Answer {
  const texts = warnings.map((warning) => `299 - ${JSON.stringify(warning)}`);
  const headers = texts.length === 0 ? {} : { headers: { Warning: texts } };
  return { status, body: renderObject(object, render), ...headers };
}

function nameOf({ namespace, name = '' }: RequestInfo): ObjectName {
  return { namespace, name };
}

type Apply = (current: JsonObject) => JsonObject;

function change(registry: Registry, request: WriteRequest, apply: Apply): Answer {
  const { info, query } = request;
  const { resource, subresource } = info;
  const options = writeOptions(query);
  if (subresource === 'scale') {
    const scale: Apply = (current) => scaleBody(current, apply(scaleOf(resource, current)));
    const { object } = registry.update(resource, nameOf(info), { part: 'main', apply: scale }, options);
    return jsonAnswer(scaleOf(resource, object.value));
  }
  const part = subresource === 'status' ? 'status' : 'main';
  return objectAnswer(request, 200, registry.update(resource, nameOf(info), { part, apply }, options));
}

function patchFunction(body: RequestBody, info: RequestInfo): Apply {
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

function writeOptions(query: URLSearchParams): WriteOptions {
  const validation = query.get('fieldValidation') ?? '';
  const dryRun = query.getAll('dryRun');
  if (dryRun.some((value) => value !== 'All')) throw badRequest(`Invalid value: ${JSON.stringify(dryRun)}: dryRun`);
  return {
    isDryRun: dryRun.length > 0,
    fieldValidation: validation === 'Strict' || validation === 'Ignore' ? validation : 'Warn',
  };
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

/** autoscaling/v1 Scale. */
const scaleSchema: ObjectSchema = object('Scale', {
  kind: text,
  apiVersion: text,
  metadata: objectMeta,
  spec: object('ScaleSpec', { replicas: int }),
  status: object('ScaleStatus', { replicas: int, selector: text }),
});

/** The Scale of a Deployment or ReplicaSet. */
export function scaleOf(resource: ResourceDefinition, owner: JsonObject): JsonObject {
  const metadata = objectAt(owner, 'metadata');
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  const replicas = numberAt(owner, 'spec', 'replicas') ?? 0;
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: withFields({}, { name, namespace, uid, resourceVersion, creationTimestamp }),
    spec: replicas === 0 ? {} : { replicas },
    status: {
      replicas: numberAt(owner, 'status', 'replicas') ?? 0,
      selector: resource.subresources.includes('scale') ? selectorText(objectAt(owner, 'spec', 'selector')) : '',
    },
  };
}

function scaleBody(owner: JsonObject, scale: JsonObject): JsonObject {
  const version = stringAt(scale, 'metadata', 'resourceVersion');
  const name = stringAt(owner, 'metadata', 'name');
  if (version !== '' && version !== stringAt(owner, 'metadata', 'resourceVersion')) {
    throw conflict({ group: 'apps', plural: 'deployments', kind: 'Deployment' }, name);
  }
  const replicas = numberAt(scale, 'spec', 'replicas') ?? 0;
  return { ...owner, spec: { ...objectAt(owner, 'spec'), replicas } };
}
