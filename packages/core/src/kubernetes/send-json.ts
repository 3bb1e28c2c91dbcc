import type * as http from 'node:http';
import * as check from '../base/argument.ts';
import { type Clock, type Millis, seconds } from '../base/time.ts';
import { brokenOff, parseRetryAfter } from './api-failure.ts';
import { type HttpRequest, sendRequest, targetOf, measureRequest } from './api-request.ts';
import { type ApiServerConnection, requireAgent, requireConnection } from './api-server-connection.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { startInactivityTimer } from './api-client.ts';

/** One request with a small answer. */
export interface JsonRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With its query, below the server's own prefix. */
  readonly path: string;
  /** Body, sent as JSON; a PATCH is a merge patch. Undefined for a GET. */
  readonly body?: unknown;
  /** Headers beside those that every request has. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** `sendJson` with its options bound. Rejects with `ApiServerError` when there is no answer. */
export type SendJson = (request: JsonRequest, signal: AbortSignal) => Promise<JsonAnswer>;

/** Answer of the server, with any status. */
export interface JsonAnswer {
  readonly status: number;
  /** Body; empty when there was none. */
  readonly body: string;
  /** Wait from the `Retry-After` header in seconds; undefined without a header, or for a date. */
  readonly retryAfter: Millis | undefined;
}

/** Options of requests. */
export interface SendOptions {
  readonly connection: ApiServerConnection;
  readonly clock: Clock;
  /** Sent as `User-Agent`. */
  readonly userAgent: string;
  /** Receives measurements of requests. Default: none. */
  readonly metrics?: Metrics;
  /** Pool of connections. Default: a new connection for each request. */
  readonly agent?: http.Agent;
  /** Time limit for the complete answer. Default: 30 s. */
  readonly answerLimit?: Millis;
  /** Length at which reading of an answer stops. Default: 1 MiB. */
  readonly maxBytes?: number;
}

/**
 * Sends one request; again if the server had closed a kept connection. Rejects with `ApiFailure` when there is no answer,
 * with `UsageError` for arguments of other types, and with `signal.reason` when aborted. After a 401 the credentials are read
 * again next time.
 */
export async function sendJson(options: SendOptions, request: JsonRequest, signal: AbortSignal): Promise<JsonAnswer> {
  checkArguments(options, request, signal);
  signal.throwIfAborted();
  const { connection, clock, answerLimit = seconds(30), maxBytes = 1 << 20 } = options;
  using timer = startInactivityTimer(clock, answerLimit);
  const measure = measureRequest({ url: connection.url, method: request.method, isWatch: false }, options);
  let status: number | undefined;
  const name = `${request.method} ${request.path}`;
  try {
    const response = await sendRequest(
      connection,
      httpRequest(options, request),
      AbortSignal.any([signal, timer.signal]),
    );
    status = response.statusCode;
    if (status === 401) connection.credentials.forget();
    return {
      status: status ?? 0,
      body: await textOf(response, maxBytes),
      retryAfter: parseRetryAfter(response.headers['retry-after']),
    };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (timer.signal.aborted) throw brokenOff(name, `no answer within ${answerLimit / 1000} s`);
    throw brokenOff(name, 'no answer', error);
  } finally {
    if (status !== undefined || !signal.aborted) measure.answered(status);
    measure.ended();
  }
}

function checkArguments(options: unknown, request: unknown, signal: unknown): void {
  check.requireFields('sendJson: options', options, {
    connection: requireConnection,
    clock: check.requireClock,
    userAgent: check.requireText,
    metrics: check.optional(check.requireMetrics),
    agent: requireAgent,
    answerLimit: check.optional(check.requireNumber),
    maxBytes: check.optional(check.requireNumber),
  });
  check.requireFields('sendJson: request', request, {
    method: check.oneOf('GET', 'POST', 'PUT', 'PATCH', 'DELETE'),
    path: check.requireText,
  });
  check.requireSignal('sendJson: signal', signal);
}

function httpRequest({ connection, userAgent, agent }: SendOptions, request: JsonRequest): HttpRequest {
  const { method, headers } = request;
  const head = { method, target: targetOf(connection.url, request.path), userAgent, agent };
  if (request.body === undefined) return { ...head, headers };
  const body = JSON.stringify(request.body);
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  // Without it, Node sends the body of a DELETE without any length.
  const content = { 'content-type': type, 'content-length': Buffer.byteLength(body) };
  return { ...head, headers: { ...content, ...headers }, body };
}

async function textOf(response: http.IncomingMessage, maxBytes: number): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) {
    text += chunk as string; // setEncoding makes it text
    if (text.length > maxBytes) break;
  }
  return text;
}
