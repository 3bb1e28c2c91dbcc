import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { JsonObject, MutableJsonObject } from '../json.ts';
import { apiVersionOf, type ResourceDefinition } from '../resource.ts';
import type { ObjectSchema, Schema } from '../schema.ts';
import { acceptsAggregatedDiscovery, type Answer, jsonAnswer, textAnswer } from './messages.ts';

const collectionVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const scaleKind = { group: 'autoscaling', version: 'v1', kind: 'Scale' };
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
  const parts = subresources.map((subresource) => ({
    subresource,
    responseKind: subresource === 'scale' ? scaleKind : responseKind,
    verbs: subresourceVerbs,
  }));
  return {
    resource: plural,
    responseKind,
    scope: resource.isNamespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs: verbsOf(resource),
    ...(shortNames.length > 0 ? { shortNames } : {}),
    ...(categories.length > 0 ? { categories } : {}),
    ...(parts.length > 0 ? { subresources: parts } : {}),
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
    ...(subresource === 'scale' ? scaleKind : { kind }),
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

/** Builds the documents by path below `/openapi/v3/`: enough for kubectl's `fieldValidation` check, `explain` and strategic merges. */
function buildOpenApiV3(resources: readonly ResourceDefinition[]): ReadonlyMap<string, string> {
  const byVersion = Object.entries(Object.groupBy(resources, apiVersionOf));
  return new Map(
    byVersion.map(([apiVersion, served = []]) => [
      apiVersion.includes('/') ? `apis/${apiVersion}` : `api/${apiVersion}`,
      JSON.stringify(documentOf(served)),
    ]),
  );
}

function indexOf(documents: ReadonlyMap<string, string>): string {
  const paths = [...documents].map(([path, text]) => [
    path,
    { serverRelativeURL: `/openapi/v3/${path}?hash=${etagOf(text).slice(1, 33)}` },
  ]);
  return JSON.stringify({ paths: Object.fromEntries(paths) });
}

function documentOf(resources: readonly ResourceDefinition[]): JsonObject {
  const schemas: MutableJsonObject = {};
  const paths: MutableJsonObject = {};
  const names = ['dryRun', 'fieldManager', 'fieldValidation', 'force'];
  const parameters = names.map((name) => ({ name, in: 'query', schema: { type: 'string', uniqueItems: true } }));
  for (const resource of resources) {
    const { group, version, kind, plural, schema, isNamespaced } = resource;
    const gvk = { group, version, kind };
    const room = group === '' ? 'core' : (group.split('.')[0] ?? '');
    schemas[`io.k8s.api.${room}.${version}.${schema.type}`] = {
      ...schemaOf(schema),
      'x-kubernetes-group-version-kind': [gvk],
    };
    const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    paths[`${root}${isNamespaced ? '/namespaces/{namespace}' : ''}/${plural}/{name}`] = {
      patch: {
        operationId: `patch${kind}`,
        parameters,
        responses: { '200': { description: 'OK' } },
        'x-kubernetes-action': 'patch',
        'x-kubernetes-group-version-kind': gvk,
      },
    };
  }
  const info = { title: 'Kubernetes', version: 'v1.36.2' };
  return { openapi: '3.0.0', info, paths, components: { schemas } };
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

/** Answers discovery, version, OpenAPI and health; undefined when the path is none of these. */
export type Documents = (path: string, request: IncomingMessage) => Answer | undefined;

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
  const made = new Date().toUTCString();
  return (path, request) => {
    if (/^\/(?:healthz|livez|readyz)(?:\/|$)/.test(path)) return textAnswer(200, 'ok');
    if (path === '/version' || path === '/version/') return jsonAnswer(version);
    if (path.startsWith('/openapi/')) return openApiAnswer(path, request, v3, made);
    return discoveryAnswer(path, request, resources);
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

/** `made` is an HTTP date. */
function openApiAnswer(
  path: string,
  request: IncomingMessage,
  v3: ReadonlyMap<string, string>,
  made: string,
): Answer | undefined {
  const headers = { 'Last-Modified': made };
  if (path === '/openapi/v3') {
    if (request.headers['if-modified-since'] === made) return { status: 304, body: '', headers };
    return { status: 200, body: indexOf(v3), contentType: 'text/plain; charset=utf-8', headers };
  }
  // An empty protobuf message is a document without definitions, so kubectl skips validation.
  if (path === '/openapi/v2') return { status: 200, body: '', contentType: protobufType, headers };
  const document = v3.get(path.slice('/openapi/v3/'.length));
  if (document === undefined) return undefined;
  return { status: 200, body: document, headers: { ...headers, Etag: etagOf(document) } };
}
