import * as http from 'node:http';
import * as https from 'node:https';
import { ApiServerError, type Clock, messageOf, seconds } from '@switchyard/core';
import { type ApiServerConnection, newApiAgent, statusMessage } from '@switchyard/core/kubernetes';

/** One request. */
export interface KubeRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With its query. */
  readonly path: string;
  /** Sent as JSON; a PATCH is a merge patch. Undefined: none. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What came back, whatever it is. */
export interface KubeAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * An API server over kept connections. What is refused rejects with `ApiServerError`, which says what was asked for; no answer does
 * too, and an abort with `signal.reason`.
 */
export interface KubeApi extends AsyncDisposable {
  /** Any status is an answer. Waits and asks again while the server is overloaded (429). */
  send(request: KubeRequest, signal: AbortSignal): Promise<KubeAnswer>;
  get<T>(path: string, signal: AbortSignal): Promise<T>;
  /** Undefined for 404. */
  find<T>(path: string, signal: AbortSignal): Promise<T | undefined>;
  list<T>(path: string, signal: AbortSignal): Promise<readonly T[]>;
  create<T>(path: string, object: T, signal: AbortSignal): Promise<T>;
  replace<T>(path: string, object: T, signal: AbortSignal): Promise<T>;
  patch<T>(path: string, change: unknown, signal: AbortSignal): Promise<T>;
  /** What is gone already is fine. */
  remove(path: string, signal: AbortSignal): Promise<void>;
}

/** With what requests are sent. */
export interface KubeApiOptions {
  readonly connection: ApiServerConnection;
  readonly clock: Clock;
}

/** Many flows are looked at side by side; more connections than this only wait at the server. */
const connectionsAtOnce = 32;
const mostRetries = 8;
const retryPause = seconds(1);

/** A client; nothing is connected yet. */
export function createKubeApi(options: KubeApiOptions): KubeApi {
  const { connection, clock } = options;
  const agent = newApiAgent(connection, { keepAlive: true, maxSockets: connectionsAtOnce });
  const send: KubeApi['send'] = async (request, signal) => {
    for (let left = mostRetries; ; left--) {
      const { answer, isStale } = await sendOnce({ connection, agent, request }, signal);
      if (isStale && left > 0) continue;
      if (answer === undefined) throw noAnswer(request, 'the connection was closed');
      if (answer.status === 401) connection.credentials.forget();
      if (answer.status !== 429 || left === 0) return answer;
      await clock.sleep(retryPause, signal);
    }
  };
  const ask = async (request: KubeRequest, signal: AbortSignal): Promise<KubeAnswer> => {
    const answer = await send(request, signal);
    if (answer.status >= 300) throw refusal(request, answer);
    return answer;
  };
  const parsed = async <T>(request: KubeRequest, signal: AbortSignal): Promise<T> =>
    JSON.parse((await ask(request, signal)).text) as T; // the path says what it is
  return {
    send,
    get: (path, signal) => parsed({ method: 'GET', path }, signal),
    find: async (path, signal) => {
      const answer = await send({ method: 'GET', path }, signal);
      if (answer.status === 404) return undefined;
      if (answer.status >= 300) throw refusal({ method: 'GET', path }, answer);
      return JSON.parse(answer.text) as never; // the path says what it is
    },
    list: async (path, signal) => {
      const { items } = await parsed<{ readonly items?: readonly never[] | null }>({ method: 'GET', path }, signal);
      return items ?? [];
    },
    create: (path, body, signal) => parsed({ method: 'POST', path, body }, signal),
    replace: (path, body, signal) => parsed({ method: 'PUT', path, body }, signal),
    patch: (path, body, signal) => parsed({ method: 'PATCH', path, body }, signal),
    remove: async (path, signal) => {
      const answer = await send({ method: 'DELETE', path, body: { propagationPolicy: 'Background' } }, signal);
      if (answer.status >= 300 && answer.status !== 404) throw refusal({ method: 'DELETE', path }, answer);
    },
    [Symbol.asyncDispose]: () => {
      agent.destroy();
      return Promise.resolve();
    },
  };
}

interface Sending {
  readonly connection: ApiServerConnection;
  readonly agent: http.Agent;
  readonly request: KubeRequest;
}

/** `isStale`: the server had closed a kept connection before it heard of the request. */
async function sendOnce(
  { connection, agent, request }: Sending,
  signal: AbortSignal,
): Promise<{ readonly answer: KubeAnswer | undefined; readonly isStale: boolean }> {
  const authorization = await connection.credentials.authorization(signal);
  const { url } = connection;
  const text = request.body === undefined ? undefined : JSON.stringify(request.body);
  const type = request.method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  const outgoing = (url.protocol === 'https:' ? https : http).request({
    protocol: url.protocol,
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port,
    path: `${url.pathname.replace(/\/$/, '')}${request.path}`,
    method: request.method,
    agent,
    signal,
    headers: {
      accept: 'application/json',
      'user-agent': 'switchyard-conformance',
      ...(text === undefined ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(text) }),
      ...(authorization === undefined ? {} : { authorization }),
      ...request.headers,
    },
  });
  let hasAnswered = false;
  try {
    const answer = await new Promise<KubeAnswer>((resolve, reject) => {
      outgoing.on('error', reject);
      outgoing.on('response', (response) => {
        hasAnswered = true;
        textOf(response).then((body) => resolve({ status: response.statusCode ?? 0, text: body }), reject);
      });
      outgoing.end(text);
    });
    return { answer, isStale: false };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (outgoing.reusedSocket && !hasAnswered && isReset(error)) return { answer: undefined, isStale: true };
    throw noAnswer(request, messageOf(error), error);
  }
}

async function textOf(response: http.IncomingMessage): Promise<string> {
  const chunks: string[] = [];
  for await (const chunk of response.setEncoding('utf8')) chunks.push(chunk as string); // setEncoding makes it text
  return chunks.join('');
}

function isReset(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}

function noAnswer({ method, path }: KubeRequest, what: string, cause?: unknown): ApiServerError {
  const message = `${method} ${path}: no answer from the API server: ${what}; is the cluster of this kubeconfig up?`;
  return new ApiServerError('api.unreachable', message, { cause, isRetryable: true });
}

/** The error for an answer that is a refusal. */
export function refusal({ method, path }: KubeRequest, { status, text }: KubeAnswer): ApiServerError {
  const advice: Readonly<Record<number, string>> = {
    401: '; the credentials of the kubeconfig are not accepted',
    403: '; deploy/conformance/rbac.yaml has all the rights that are needed',
  };
  const message = `${method} ${path}: the API server answered ${status}: ${statusMessage(text)}${advice[status] ?? ''}`;
  return new ApiServerError(`api.${status}`, message, { isRetryable: status >= 500, status });
}
