import type { IncomingMessage, ServerResponse } from 'node:http';
import { methodNotAllowed, noSuchResource, notFound } from '../status-error.ts';
import { readBody } from './body.ts';
import type { ServerContext } from './context.ts';
import type { Fault } from './faults.ts';
import { parseListOptions } from './list-options.ts';
import { listObjects } from './list.ts';
import { negotiate } from './negotiate.ts';
import { parseProxyPath, proxyToPod } from './pod-proxy.ts';
import { type RenderOptions, renderObject } from './representation.ts';
import { parseResourcePath, type RequestInfo } from './request-info.ts';
import { type Answer, answerForError, jsonAnswer, sendAnswer, textAnswer } from './respond.ts';
import { scaleOf } from './scale.ts';
import { slowDown } from './slow-body.ts';
import { WatchSession } from './watch.ts';
import {
  handleBinding,
  handleCreate,
  handleDelete,
  handleDeleteCollection,
  handlePatch,
  handleReplace,
  hasSubresource,
  type WriteRequest,
} from './write.ts';

/** Serves one request to its end; never rejects. */
export async function handleRequest(
  context: ServerContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const aborted = new AbortController();
  response.once('close', () => aborted.abort(new Error('the client has disconnected')));
  try {
    const url = new URL(request.url ?? '/', 'http://server');
    const isWatch = ['1', 'true'].includes(url.searchParams.get('watch') ?? '') || url.pathname.includes('/watch/');
    const { method = 'GET', url: target = '', headers } = request;
    const fault = context.faults.take({ method, target, isWatch, authorization: headers.authorization ?? '' });
    if (fault !== undefined && !(await passes(fault, context, { request, response, signal: aborted.signal }))) return;
    context.access.check(request.method ?? 'GET', url, request.headers.authorization);
    const proxied = parseProxyPath(url.pathname);
    if (proxied !== undefined) {
      return await proxyToPod(context, proxied, { url, request, response, signal: aborted.signal });
    }
    const answer = await answerRequest(context, { url, request, response, signal: aborted.signal });
    if (answer !== undefined) sendAnswer(request, response, answer);
  } catch (error) {
    if (aborted.signal.aborted) return;
    if (response.headersSent) response.destroy();
    else sendAnswer(request, response, answerForError(error));
  }
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly signal: AbortSignal;
}

/** Applies a fault; true if the request is then served normally. */
async function passes(fault: Fault, context: ServerContext, exchange: Exchange): Promise<boolean> {
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
async function answerRequest(
  context: ServerContext,
  exchange: Exchange & { readonly url: URL },
): Promise<Answer | undefined> {
  const { url, request, response } = exchange;
  const path = url.pathname;
  const document = context.documents.answer(path, request);
  if (document !== undefined) return document;
  const info = parseResourcePath(path, context.resources);
  if (info === undefined) return textAnswer(404, '404 page not found\n');
  if (info.subresource !== undefined && !hasSubresource(info.resource, info.subresource)) throw noSuchResource();
  const render = renderOptions(context, url, request);
  switch (request.method) {
    case 'GET': {
      if (info.name !== undefined && !info.isWatchPath) return getAnswer(context, info, render);
      const options = parseListOptions(url.searchParams, info);
      if (!options.isWatch) {
        const body = await listObjects(context, { resource: info.resource, options, render }, exchange.signal);
        return { status: 200, body };
      }
      const watch = { resource: info.resource, options, render, response };
      const session = new WatchSession(context, watch, () => void context.sessions.delete(session));
      context.sessions.add(session);
      session.start();
      return undefined;
    }
    case 'POST':
    case 'PUT':
    case 'PATCH':
    case 'DELETE':
      return writeAnswer(context, info, { url, request, render });
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
  exchange: { readonly url: URL; readonly request: IncomingMessage; readonly render: RenderOptions },
): Promise<Answer> {
  const { url, request, render } = exchange;
  const { method } = request;
  const { registry } = context;
  const write: WriteRequest = { info, query: url.searchParams, body: await readBody(request), render };
  const isCollection = info.name === undefined;
  if (method === 'DELETE' && isCollection) return handleDeleteCollection(context, write);
  if (info.subresource === 'binding') {
    if (method !== 'POST') throw methodNotAllowed();
    return handleBinding(registry, write);
  }
  if (method === 'POST' && isCollection) {
    if (info.resource.isNamespaced && info.namespace === '') throw methodNotAllowed();
    return handleCreate(registry, write);
  }
  if (method === 'PUT' && !isCollection) return handleReplace(registry, write);
  if (method === 'PATCH' && !isCollection) return handlePatch(registry, write);
  if (method === 'DELETE' && info.subresource === undefined) return handleDelete(registry, write);
  throw methodNotAllowed();
}
