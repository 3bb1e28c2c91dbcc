import type { IncomingMessage, ServerResponse } from 'node:http';
import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { messageOf } from '@switchyard/core';
import { parse as parseYaml } from 'yaml';
import { isJsonObject, type Json, type JsonObject } from '../json.ts';
import { decodeProtobuf } from '../protobuf.ts';
import { badRequest, internalError, StatusError, unsupportedMediaType } from '../status-error.ts';

/** A request's body, not yet parsed. */
export interface RequestBody {
  readonly bytes: Buffer;
  /** Without parameters; `application/json` when the client named none. */
  readonly contentType: string;
}

/** Larger bodies are refused with 413, as the real server does (3 MiB). */
const limit = 3 * 1024 * 1024;

/** Reads the whole body. */
export async function readBody(request: IncomingMessage): Promise<RequestBody> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    const bytes = chunk as Buffer;
    size += bytes.length;
    if (size > limit) {
      const message = `Request entity too large: limit is ${limit}`;
      throw new StatusError({ code: 413, reason: 'RequestEntityTooLarge', message });
    }
    chunks.push(bytes);
  }
  const contentType = (request.headers['content-type'] ?? 'application/json').split(';')[0]?.trim() ?? '';
  return { bytes: Buffer.concat(chunks), contentType };
}

/** The body as an object; rejects with 400 for what cannot be parsed and 415 for other media types. */
export function parseBody(body: RequestBody): JsonObject {
  const value = parseText(body);
  if (!isJsonObject(value)) {
    throw badRequest(
      "couldn't get version/kind; json parse error: json: cannot unmarshal into Go value of type struct",
    );
  }
  return value;
}

/** The body as any JSON value; rejects with 400 when it is none. */
export function parseJson(body: RequestBody): Json {
  return parseText({ ...body, contentType: 'application/json' }) as Json;
}

function parseText(body: RequestBody): unknown {
  try {
    if (body.contentType === 'application/json' || body.contentType === '')
      return JSON.parse(body.bytes.toString('utf8'));
    if (body.contentType === 'application/yaml') return parseYaml(body.bytes.toString('utf8'));
    if (body.contentType === 'application/vnd.kubernetes.protobuf') {
      const decoded = decodeProtobuf(body.bytes);
      if (decoded !== undefined) return decoded;
    }
  } catch (cause) {
    const detail = messageOf(cause);
    throw badRequest(`error decoding the body of the request: ${detail}`);
  }
  throw unsupportedMediaType(
    'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml',
  );
}

/** In which form objects are sent. */
export type Representation = 'object' | 'table';

/** Picks the first form of the Accept header that the server has; rejects with a 406 Status if there is none. */
export function negotiate(accept: string | undefined): Representation {
  const ranges = parseAccept(accept);
  if (ranges.length === 0) return 'object';
  for (const { type, parameters } of ranges) {
    if (type === '*/*' || type === 'application/*') return 'object';
    if (type !== 'application/json') continue;
    const as = parameters.get('as');
    if (as === null) return 'object';
    if (parameters.get('g') !== 'meta.k8s.io' || parameters.get('v') !== 'v1') continue;
    if (as === 'Table') return 'table';
  }
  const message = '406: Not Acceptable\n\nAvailable representations: application/json, application/json;stream=watch';
  throw new StatusError({ code: 406, reason: 'NotAcceptable', message, details: {} });
}

/** Whether the client takes aggregated discovery documents (KEP-3352) of version v2. */
export function acceptsAggregatedDiscovery(accept: string | undefined): boolean {
  return parseAccept(accept).some(
    ({ parameters }) => parameters.get('as') === 'APIGroupDiscoveryList' && parameters.get('v') === 'v2',
  );
}

function parseAccept(accept = ''): readonly { readonly type: string; readonly parameters: URLSearchParams }[] {
  if (accept.trim() === '') return [];
  return accept.split(',').map((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    return { type, parameters: new URLSearchParams(parameters.join('&')) };
  });
}

/** Bodies from this size on are compressed when the client takes gzip. */
const gzipThreshold = 128 * 1024;

/** One answer with a complete body. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

export function sendAnswer(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  response.statusCode = answer.status;
  setCommonHeaders(response);
  if (answer.status !== 304) response.setHeader('Content-Type', answer.contentType ?? 'application/json');
  for (const [name, value] of Object.entries(answer.headers ?? {})) response.setHeader(name, value as string);
  if (answer.body.length >= gzipThreshold && acceptsGzip(request)) {
    response.setHeader('Content-Encoding', 'gzip');
    response.setHeader('Vary', 'Accept-Encoding');
    response.end(gzipSync(answer.body, { level: 1 }));
    return;
  }
  response.end(answer.status === 304 ? undefined : answer.body);
}

/** Headers that every answer of the real server has. */
export function setCommonHeaders(response: ServerResponse): void {
  response.setHeader('Audit-Id', randomUUID());
  response.setHeader('Cache-Control', 'no-cache, private');
}

/** The answer for an error: a Status, with Retry-After where the Status says when to come back. */
export function answerForError(error: unknown): Answer {
  const status = error instanceof StatusError ? error : internalError(`Internal error occurred: ${messageOf(error)}`);
  const { code, retryAfterSeconds } = status.fields;
  return {
    status: code,
    body: `${JSON.stringify(status.toStatus())}\n`,
    ...(retryAfterSeconds === undefined ? {} : { headers: { 'Retry-After': String(retryAfterSeconds) } }),
  };
}

/** A plain text answer, as health checks and unknown paths get. */
export function textAnswer(status: number, body: string): Answer {
  const headers = { 'X-Content-Type-Options': 'nosniff' };
  return { status, body, contentType: 'text/plain; charset=utf-8', headers };
}

/** A 200 answer with a document. */
export function jsonAnswer(body: unknown): Answer {
  return { status: 200, body: `${JSON.stringify(body)}\n` };
}

/** Whether the client takes gzip. */
export function acceptsGzip(request: IncomingMessage): boolean {
  return /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''));
}
