import * as http from 'node:http';
import * as https from 'node:https';
import { type Clock, type Millis, seconds } from '../time.ts';
import { tlsOptionsOf } from './api-agent.ts';
import { brokenOff, parseRetryAfter } from './api-failure.ts';
import type { ApiServerConnection } from './api-server-connection.ts';
import type { Metrics } from '../metrics.ts';
import { RequestMetrics } from './request-metrics.ts';
import { startInactivityTimer } from './inactivity.ts';

/** One request that writes, or asks for something small. */
export interface JsonRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With its query, below the server's own prefix. */
  readonly path: string;
  /** Sent as JSON; a PATCH is a merge patch. Undefined for a GET. */
  readonly body?: unknown;
}

/** One request, as `sendJson` with its options given: rejects with `ApiServerError` when there is no answer. */
export type SendJson = (request: JsonRequest, signal: AbortSignal) => Promise<JsonAnswer>;

/** What the server said, whatever it said. */
export interface JsonAnswer {
  readonly status: number;
  /** Empty when there was none. */
  readonly body: string;
  /** From the `Retry-After` header in seconds; undefined when there is none, or when it is a date. */
  readonly retryAfter: Millis | undefined;
}

/** With what requests are sent. */
export interface SendOptions {
  readonly connection: ApiServerConnection;
  readonly clock: Clock;
  /** Sent as `User-Agent`. */
  readonly userAgent: string;
  /** Where requests are measured. Default: nowhere. */
  readonly metrics?: Metrics;
}

const answerLimit = seconds(30);
const maxAnswerBytes = 1 << 20;

/**
 * Sends one request on a connection of its own, for what is rare. Rejects with `ApiFailure` when there is no answer,
 * and with `signal.reason` when aborted. After a 401 the credentials are read again next time.
 */
export async function sendJson(options: SendOptions, request: JsonRequest, signal: AbortSignal): Promise<JsonAnswer> {
  signal.throwIfAborted();
  const { connection, clock, userAgent } = options;
  using timer = startInactivityTimer(clock, answerLimit);
  const measure = new RequestMetrics(connection.url, options).begin(request.method, false);
  let status: number | undefined;
  const name = `${request.method} ${request.path}`;
  try {
    const authorization = await connection.credentials.authorization(signal);
    const stop = AbortSignal.any([signal, timer.signal]);
    const sent = open(connection, request, { authorization, userAgent, stop });
    const response = await answerOf(sent, request.body);
    status = response.statusCode;
    if (status === 401) connection.credentials.forget();
    return {
      status: status ?? 0,
      body: await textOf(response),
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

interface Headers {
  readonly authorization: string | undefined;
  readonly userAgent: string;
  readonly stop: AbortSignal;
}

function open(
  connection: ApiServerConnection,
  request: JsonRequest,
  { authorization, userAgent, stop }: Headers,
): http.ClientRequest {
  const { url } = connection;
  const type = request.method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  const options: https.RequestOptions = {
    protocol: url.protocol,
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port,
    path: `${url.pathname.replace(/\/$/, '')}${request.path}`,
    method: request.method,
    agent: false,
    signal: stop,
    headers: {
      accept: 'application/json',
      'user-agent': userAgent,
      ...(request.body === undefined ? {} : { 'content-type': type }),
      ...(authorization === undefined ? {} : { authorization }),
    },
  };
  if (url.protocol !== 'https:') return http.request(options);
  return https.request({ ...options, ...tlsOptionsOf(connection) });
}

function answerOf(request: http.ClientRequest, body: unknown): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    // The error listener stays: an abort after the answer must not end the process.
    request.on('error', reject).on('response', resolve);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function textOf(response: http.IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) {
    text += chunk as string; // setEncoding makes it text
    if (text.length > maxAnswerBytes) break;
  }
  return text;
}
