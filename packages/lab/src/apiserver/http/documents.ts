import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { JsonObject, MutableJsonObject } from '../json.ts';
import { apiVersionOf, type ResourceDefinition } from '../resource.ts';
import type { ObjectSchema, Schema } from '../schema.ts';
import { acceptsAggregatedDiscovery, type Answer, jsonAnswer, textAnswer } from './messages.ts';

const collectionVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const subresourceVerbs = ['get', 'patch', 'update'];

/** The aggregated document (KEP-3352) of `/api` (core group) or `/apis` (all others). */
function aggregatedDiscovery(resources: readonly ResourceDefinition[], isCore: boolean): JsonObject {
  const groups = groupsOf(resources).filter((group) => (group === '') === isCore);
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: groups.map((group) => ({
      metadata: group === '' ? {} : { name: group },
      versions: [
        {
          version: 'v1',
          resources: resources.filter((resource) => resource.group === group).map(discoveryEntry),
          freshness: 'Current',
        },
      ],
    })),
  };
}

/** The older documents: `/api`, `/apis`, `/apis/GROUP`, `/api/v1`, `/apis/GROUP/v1`; undefined for other paths. */
function legacyDiscovery(
  path: string,
  resources: readonly ResourceDefinition[],
  serverAddress: string,
): JsonObject | undefined {
  if (path === '/api') {
    const serverAddressByClientCIDRs = [{ clientCIDR: '0.0.0.0/0', serverAddress }];
    return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs };
  }
  const groups = groupsOf(resources).filter((group) => group !== '');
  if (path === '/apis') return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map(groupEntry) };
  const [, root, group = '', version, ...rest] = path.split('/');
  if (rest.length > 0) return undefined;
  if (root === 'api' && group === 'v1' && version === undefined) return resourceList('v1', resources);
  if (root !== 'apis' || !groups.includes(group)) return undefined;
  if (version === undefined) return { kind: 'APIGroup', apiVersion: 'v1', ...groupEntry(group) };
  return version === 'v1' ? resourceList(`${group}/v1`, resources) : undefined;
}

/** Entity tag of a document. */
function etagOf(body: string): string {
  return `"${createHash('sha512').update(body).digest('hex').toUpperCase()}"`;
}

/** Groups in the order of the table, each once. */
function groupsOf(resources: readonly ResourceDefinition[]): readonly string[] {
  return [...new Set(resources.map((resource) => resource.group))];
}

function discoveryEntry(resource: ResourceDefinition): JsonObject {
  const { plural, kind, singular, shortNames, categories, subresources } = resource;
  const responseKind = { group: '', version: '', kind };
  return {
    resource: plural,
    responseKind,
    scope: resource.isNamespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs: verbsOf(resource),
    ...(shortNames.length > 0 ? { shortNames } : {}),
    ...(categories.length > 0 ? { categories } : {}),
    ...(subresources.length > 0
      ? {
          subresources: subresources.map((subresource) => ({
            subresource,
            responseKind:
              subresource === 'scale' ? { group: 'autoscaling', version: 'v1', kind: 'Scale' } : responseKind,
            verbs: subresourceVerbs,
          })),
        }
      : {}),
  };
}

function resourceList(groupVersion: string, resources: readonly ResourceDefinition[]): JsonObject {
  const served = resources.filter((resource) => apiVersionOf(resource) === groupVersion);
  const apiVersion = groupVersion === 'v1' ? {} : { apiVersion: 'v1' };
  return { kind: 'APIResourceList', ...apiVersion, groupVersion, resources: served.flatMap(resourceEntries) };
}

function resourceEntries(resource: ResourceDefinition): readonly JsonObject[] {
  const { plural, singular, kind, isNamespaced: namespaced, shortNames, categories } = resource;
  const main: JsonObject = {
    name: plural,
    singularName: singular,
    namespaced,
    kind,
    verbs: verbsOf(resource),
    ...(shortNames.length > 0 ? { shortNames } : {}),
    ...(categories.length > 0 ? { categories } : {}),
  };
  const subs = resource.subresources.map((subresource) => ({
    name: `${plural}/${subresource}`,
    singularName: '',
    namespaced,
    ...(subresource === 'scale' ? { group: 'autoscaling', version: 'v1', kind: 'Scale' } : { kind }),
    verbs: subresourceVerbs,
  }));
  return [main, ...subs];
}

function verbsOf(resource: ResourceDefinition): readonly string[] {
  return resource.kind === 'Namespace'
    ? collectionVerbs.filter((verb) => verb !== 'deletecollection')
    : collectionVerbs;
}

function groupEntry(name: string): JsonObject {
  const version = { groupVersion: `${name}/v1`, version: 'v1' };
  return { name, versions: [version], preferredVersion: version };
}

/** The paths of `/openapi/v3`, and the document behind each. */
interface OpenApiV3 {
  readonly index: JsonObject;
  /** By path below `/openapi/v3/`, for example `apis/apps/v1`. */
  readonly documents: ReadonlyMap<string, string>;
}

/** Builds the v3 documents: enough for kubectl's `fieldValidation` check, `explain` and strategic merges. */
function buildOpenApiV3(resources: readonly ResourceDefinition[]): OpenApiV3 {
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
function buildOpenApiV2(resources: readonly ResourceDefinition[]): JsonObject {
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

/** Everything that is not a resource: discovery, version, OpenAPI, health. */
export interface Documents {
  /** Undefined when the path is none of these. */
  answer(path: string, request: IncomingMessage): Answer | undefined;
}

const aggregatedType = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const protobufType = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

const version = {
  major: '1',
  minor: '36',
  emulationMajor: '1',
  emulationMinor: '36',
  minCompatibilityMajor: '1',
  minCompatibilityMinor: '35',
  gitVersion: 'v1.36.2',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: 'none',
  compiler: 'none',
  platform: 'linux/amd64',
};

/** Builds the documents of one server; they are constant while it runs. */
export function createDocuments(resources: readonly ResourceDefinition[]): Documents {
  const v3 = buildOpenApiV3(resources);
  const v2 = JSON.stringify(buildOpenApiV2(resources));
  const made = new Date().toUTCString();
  return {
    answer: (path, request) => {
      if (/^\/(?:healthz|livez|readyz)(?:\/|$)/.test(path)) return textAnswer(200, 'ok');
      if (path === '/version' || path === '/version/') return jsonAnswer(version);
      if (path.startsWith('/openapi/')) return openApiAnswer(path, request, { v3, v2, made });
      return discoveryAnswer(path, request, resources);
    },
  };
}

function discoveryAnswer(
  path: string,
  request: IncomingMessage,
  resources: readonly ResourceDefinition[],
): Answer | undefined {
  const isRoot = path === '/api' || path === '/apis';
  if (!isRoot || !acceptsAggregatedDiscovery(request.headers.accept)) {
    const document = legacyDiscovery(path, resources, request.headers.host ?? '');
    return document === undefined ? undefined : jsonAnswer(document);
  }
  const body = `${JSON.stringify(aggregatedDiscovery(resources, path === '/api'))}\n`;
  const etag = etagOf(body);
  const headers = { Etag: etag, Vary: 'Accept' };
  if (request.headers['if-none-match'] === etag) return { status: 304, body: '', headers };
  return { status: 200, body, contentType: aggregatedType, headers };
}

interface OpenApi {
  readonly v3: ReturnType<typeof buildOpenApiV3>;
  readonly v2: string;
  /** HTTP date. */
  readonly made: string;
}

function openApiAnswer(path: string, request: IncomingMessage, openApi: OpenApi): Answer | undefined {
  const headers = { 'Last-Modified': openApi.made };
  const isKnown = request.headers['if-modified-since'] === openApi.made;
  if (path === '/openapi/v3') {
    if (isKnown) return { status: 304, body: '', headers };
    return { status: 200, body: JSON.stringify(openApi.v3.index), contentType: 'text/plain; charset=utf-8', headers };
  }
  if (path === '/openapi/v2') {
    // kubectl requests protobuf. An empty message is a document without definitions, so kubectl skips validation.
    const wantsProtobuf = (request.headers.accept ?? '').includes('protobuf');
    return {
      status: 200,
      body: wantsProtobuf ? '' : openApi.v2,
      contentType: wantsProtobuf ? protobufType : 'application/json',
      headers,
    };
  }
  const document = openApi.v3.documents.get(path.slice('/openapi/v3/'.length));
  if (document === undefined) return undefined;
  return { status: 200, body: document, headers: { ...headers, Etag: etagOf(document) } };
}
