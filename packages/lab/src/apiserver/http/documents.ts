import type { IncomingMessage } from 'node:http';
import type { ResourceDefinition } from '../resource.ts';
import { acceptsAggregatedDiscovery } from './negotiate.ts';
import { aggregatedDiscovery, etagOf, legacyDiscovery } from './discovery.ts';
import { buildOpenApiV2, buildOpenApiV3 } from './openapi.ts';
import { type Answer, jsonAnswer, textAnswer } from './respond.ts';

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
