import type { JsonObject, MutableJsonObject } from '../json.ts';
import { apiVersionOf, type ResourceDefinition } from '../resource.ts';
import type { ObjectSchema, Schema } from '../schema/schema.ts';
import { etagOf } from './discovery.ts';

/** The paths of `/openapi/v3`, and the document behind each. */
export interface OpenApiV3 {
  readonly index: JsonObject;
  /** By path below `/openapi/v3/`, for example `apis/apps/v1`. */
  readonly documents: ReadonlyMap<string, string>;
}

/** Builds the v3 documents: enough for kubectl's `fieldValidation` check, `explain` and strategic merges. */
export function buildOpenApiV3(resources: readonly ResourceDefinition[]): OpenApiV3 {
  const documents = new Map<string, string>();
  const paths: MutableJsonObject = {};
  for (const apiVersion of new Set(resources.map(apiVersionOf))) {
    const served = resources.filter((resource) => apiVersionOf(resource) === apiVersion);
    const path = apiVersion.includes('/') ? `apis/${apiVersion}` : `api/${apiVersion}`;
    const text = JSON.stringify(documentOf(served, 'v3'));
    documents.set(path, text);
    paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${etagOf(text).slice(1, 33)}` };
  }
  return { index: { paths }, documents };
}

/** Builds the v2 document as JSON. Clients that request protobuf get an empty document, which they accept. */
export function buildOpenApiV2(resources: readonly ResourceDefinition[]): JsonObject {
  return documentOf(resources, 'v2');
}

type Dialect = 'v2' | 'v3';

function documentOf(resources: readonly ResourceDefinition[], dialect: Dialect): JsonObject {
  const definitions: MutableJsonObject = {};
  const paths: MutableJsonObject = {};
  for (const resource of resources) {
    const name = definitionName(resource, resource.schema.type);
    definitions[name] = {
      ...schemaOf(resource.schema),
      'x-kubernetes-group-version-kind': [gvkOf(resource)],
    };
    paths[pathOf(resource)] = { patch: patchOperation(resource, dialect) };
  }
  const info = { title: 'Kubernetes', version: 'v1.36.2' };
  return dialect === 'v2'
    ? { swagger: '2.0', info, paths, definitions }
    : { openapi: '3.0.0', info, paths, components: { schemas: definitions } };
}

function patchOperation(resource: ResourceDefinition, dialect: Dialect): JsonObject {
  const parameter = (name: string): JsonObject =>
    dialect === 'v2'
      ? { name, in: 'query', type: 'string', uniqueItems: true }
      : { name, in: 'query', schema: { type: 'string', uniqueItems: true } };
  const names = ['dryRun', 'fieldManager', 'fieldValidation', 'force'];
  return {
    operationId: `patch${resource.kind}`,
    parameters: names.map(parameter),
    responses: { '200': { description: 'OK' } },
    'x-kubernetes-action': 'patch',
    'x-kubernetes-group-version-kind': gvkOf(resource),
  };
}

function schemaOf(schema: Schema): JsonObject {
  switch (schema.kind) {
    case 'string':
      return { type: 'string' };
    case 'int32':
    case 'int64':
      return { type: 'integer', format: schema.kind };
    case 'bool':
      return { type: 'boolean' };
    case 'intOrString':
      return { format: 'int-or-string', oneOf: [{ type: 'integer' }, { type: 'string' }] };
    case 'any':
      return { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    case 'map':
      return { type: 'object', additionalProperties: schemaOf(schema.values) };
    case 'list': {
      const list: JsonObject = { type: 'array', items: schemaOf(schema.items) };
      if (schema.merge.kind === 'atomic') return { ...list, 'x-kubernetes-list-type': 'atomic' };
      const key = schema.merge.kind === 'byKey' ? { 'x-kubernetes-patch-merge-key': schema.merge.key } : {};
      return { ...list, 'x-kubernetes-patch-strategy': 'merge', ...key };
    }
    case 'object':
      return objectSchemaOf(schema);
  }
}

function objectSchemaOf(schema: ObjectSchema): JsonObject {
  const properties = Object.fromEntries(Object.entries(schema.fields).map(([name, field]) => [name, schemaOf(field)]));
  return {
    type: 'object',
    properties,
    ...(schema.isOpen ? { 'x-kubernetes-preserve-unknown-fields': true } : {}),
    ...(schema.isRetainKeys ? { 'x-kubernetes-patch-strategy': 'retainKeys' } : {}),
  };
}

function definitionName(resource: ResourceDefinition, type: string): string {
  const group = resource.group === '' ? 'core' : (resource.group.split('.')[0] ?? '');
  return `io.k8s.api.${group}.${resource.version}.${type}`;
}

function gvkOf(resource: ResourceDefinition): JsonObject {
  return { group: resource.group, version: resource.version, kind: resource.kind };
}

function pathOf(resource: ResourceDefinition): string {
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const scope = resource.isNamespaced ? '/namespaces/{namespace}' : '';
  return `${root}${scope}/${resource.plural}/{name}`;
}
