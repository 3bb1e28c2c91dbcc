import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock, Millis } from '@switchyard/core';
import { methodNotAllowed, noSuchResource, notFound } from '../status-error.ts';
import {
  acceptsGzip,
  type Answer,
  answerForError,
  jsonAnswer,
  negotiate,
  readBody,
  sendAnswer,
  textAnswer,
} from './messages.ts';
import { type Fault, type FaultList, slowDown } from './faults.ts';
import { listObjects, parseListOptions } from './list.ts';
import { parseProxyPath, type ProxyExchange, proxyToPod } from './pod-proxy.ts';
import { renderObject, type RenderOptions } from './representation.ts';
import {
  handleCreate,
  handleDelete,
  handleDeleteCollection,
  handlePatch,
  handleReplace,
  scaleOf,
  type WriteRequest,
} from './write.ts';
import { WatchSession } from './watch.ts';
import type { ResourceDefinition } from '../resource.ts';
import { type AccessCheck, resourcePath } from '../access.ts';
import type { Connect } from '../namespace-sockets.ts';
import type { Registry } from '../registry/registry.ts';
import type { Store } from '../store.ts';
import type { Documents } from './documents.ts';

/** Serves one request to its end; never rejects. */
export async function handleRequest(
  context: ServerContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const aborted = new AbortController();
  const { signal } = aborted;
  response.once('close', () => aborted.abort(new Error('the client has disconnected')));
  try {
    const { method = 'GET', url: target = '/', headers } = request;
    const url = new URL(target, 'http://server');
    const exchange: ProxyExchange = { url, request, response, signal };
    const fault = context.faults.take({
      method,
      target,
      isWatch: isWatch(url),
      authorization: headers.authorization ?? '',
    });
    if (fault !== undefined && !(await passes(fault, context, exchange))) return;
    context.access.check(method, url, headers.authorization);
    const proxied = parseProxyPath(url.pathname);
    if (proxied !== undefined) return await proxyToPod(context, proxied, exchange);
    const answer = await answerRequest(context, exchange);
    if (answer !== undefined) sendAnswer(request, response, answer);
  } catch (error) {
    if (signal.aborted) return;
    if (response.headersSent) response.destroy();
    else sendAnswer(request, response, answerForError(error));
  }
}

function isWatch({ searchParams }: URL): boolean {
  return ['1', 'true'].includes(searchParams.get('watch') ?? '');
}

/** Applies a fault; true if the request is then served normally. */
async function passes(fault: Fault, context: ServerContext, exchange: ProxyExchange): Promise<boolean> {
  const { request, response, signal } = exchange;
  switch (fault.kind) {
    case 'delay':
      await context.clock.sleep(fault.duration, signal);
      return true;
    case 'reset':
      request.socket.resetAndDestroy();
      return false;
    case 'stall':
      return false;
    case 'slow':
      slowDown(response, fault, context.clock, signal);
      return true;
    case 'status': {
      const headers = fault.retryAfter === undefined ? {} : { 'Retry-After': String(fault.retryAfter) };
      const answer = textAnswer(fault.status, fault.body ?? 'Too many requests, please try again later.\n');
      sendAnswer(request, response, { ...answer, headers: { ...answer.headers, ...headers } });
      return false;
    }
  }
}

/** The answer; undefined when the response is a stream that is already under way. */
async function answerRequest(context: ServerContext, exchange: ProxyExchange): Promise<Answer | undefined> {
  const { url, request, response } = exchange;
  const path = url.pathname;
  const document = context.documents(path, request);
  if (document !== undefined) return document;
  const info = parseResourcePath(path, context.resources);
  if (info === undefined) return textAnswer(404, '404 page not found\n');
  if (info.subresource !== undefined && !info.resource.subresources.some((known) => known === info.subresource)) {
    throw noSuchResource();
  }
  const render = renderOptions(context, url, request);
  switch (request.method) {
    case 'GET': {
      if (info.name !== undefined) return getAnswer(context, info, render);
      const options = parseListOptions(url.searchParams, info);
      if (!options.isWatch) {
        const body = await listObjects(context, { resource: info.resource, options, render }, exchange.signal);
        return { status: 200, body };
      }
      const isCompressed = context.compressesWatchLists && options.sendInitialEvents && acceptsGzip(request);
      const watch = { resource: info.resource, options, render, response, isCompressed };
      const session = new WatchSession(context, watch, () => void context.sessions.delete(session));
      context.sessions.add(session);
      session.start();
      return undefined;
    }
    case 'POST':
    case 'PUT':
    case 'PATCH':
    case 'DELETE':
      return writeAnswer(context, info, exchange, render);
    default:
      throw methodNotAllowed();
  }
}

function renderOptions(context: ServerContext, url: URL, request: IncomingMessage): RenderOptions {
  const include = url.searchParams.get('includeObject');
  return {
    representation: negotiate(request.headers.accept),
    includeObject: include === 'None' || include === 'Object' ? include : 'Metadata',
    now: context.clock.now(),
  };
}

function getAnswer(context: ServerContext, info: RequestInfo, render: RenderOptions): Answer {
  const name = info.name ?? '';
  const object = context.store.get(info.resource, info.namespace, name);
  if (object === undefined) throw notFound(info.resource, name);
  if (info.subresource === 'scale') return jsonAnswer(scaleOf(info.resource, object.value));
  return { status: 200, body: renderObject(object, render) };
}

async function writeAnswer(
  context: ServerContext,
  info: RequestInfo,
  { url, request }: ProxyExchange,
  render: RenderOptions,
): Promise<Answer> {
  const { method } = request;
  const { registry } = context;
  const write: WriteRequest = { info, query: url.searchParams, body: await readBody(request), render };
  const isCollection = info.name === undefined;
  if (method === 'DELETE' && isCollection) return handleDeleteCollection(context, write);
  if (method === 'POST' && isCollection) {
    if (info.resource.isNamespaced && info.namespace === '') throw methodNotAllowed();
    return handleCreate(registry, write);
  }
  if (method === 'PUT' && !isCollection) return handleReplace(registry, write);
  if (method === 'PATCH' && !isCollection) return handlePatch(registry, write);
  if (method === 'DELETE' && info.subresource === undefined) return handleDelete(registry, write);
  throw methodNotAllowed();
}

/** Resource, object and subresource in a request's path. */
export interface RequestInfo {
  readonly resource: ResourceDefinition;
  /** '' when the path has none: all namespaces, or a cluster-scoped kind. */
  readonly namespace: string;
  /** Undefined for a collection. */
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

/**
 * Returns undefined when no such group and version is served, or the path is not of a resource; rejects with a 404
 * Status when the group has no such resource.
 */
function parseResourcePath(path: string, resources: readonly ResourceDefinition[]): RequestInfo | undefined {
  const parts = resourcePath(path);
  if (parts === undefined) return undefined;
  const { group, version, namespace, isInNamespace, plural, name, subresource, excess } = parts;
  const served = resources.filter((resource) => resource.group === group && resource.version === version);
  if (served.length === 0) return undefined;
  const resource = served.find((candidate) => candidate.plural === plural);
  if (resource === undefined || excess.length > 0 || resource.isNamespaced !== isInNamespace) {
    // A namespaced collection may be read over all namespaces.
    if (resource === undefined || isInNamespace || name !== undefined) throw noSuchResource();
  }
  return { resource, namespace, name, subresource };
}

/** Shared state of the request handlers. */
export interface ServerContext {
  readonly store: Store;
  readonly registry: Registry;
  readonly resources: readonly ResourceDefinition[];
  readonly clock: Clock;
  /** Between bookmarks of a watch. */
  readonly bookmarkInterval: Millis;
  readonly compressesWatchLists: boolean;
  readonly faults: FaultList;
  readonly access: AccessCheck;
  readonly sessions: Set<WatchSession>;
  readonly documents: Documents;
  /** Opens connections to pods, for `pods/proxy`. */
  readonly connect: Connect;
}
