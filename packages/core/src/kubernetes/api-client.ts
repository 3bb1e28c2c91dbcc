import * as http from 'node:http';
import * as https from 'node:https';
import { type Clock, type Millis, seconds } from '../time.ts';
import { newApiAgent } from './api-agent.ts';
import { brokenOff, cutOff, failureFrom, fellSilent } from './api-failure.ts';
import type { ApiServerConnection } from './api-server-connection.ts';
import { type RequestMeasure, RequestMetrics } from './request-metrics.ts';
import type { Metrics } from '../metrics.ts';
import { defaultTimings } from './reflector-timings.ts';
import { inactive, startInactivityTimer, type InactivityTimer } from './inactivity.ts';

/** What a GET asks for. */
export interface ApiRequest {
  readonly path: string;
  readonly query: URLSearchParams;
}

/** The body of a 200 answer, as it arrives. */
export interface ApiBody {
  /** Method and target, for messages. */
  readonly request: string;
  /**
   * Chunks until the server finishes the body. Rejects with `ApiFailure` when it broke off (`isCut`: the
   * connection closed in between) or fell silent.
   */
  chunks(): AsyncIterable<Buffer>;
  /** Silence longer than this ends `read` with an error from now on. */
  setInactivity(limit: Millis): void;
}

/** GETs on one API server over kept-alive connections. */
export interface ApiClient extends AsyncDisposable {
  /**
   * Calls `use` with the body of a 200 answer, and closes the connection if `use` leaves before the
   * body's end. Any other status rejects with `ApiFailure`, and so does no answer within the inactivity
   * limit; rejects with `signal.reason` when aborted.
   */
  get<T>(request: ApiRequest, use: (body: ApiBody) => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** What a client needs beside the connection. */
export interface ApiClientOptions {
  readonly clock: Clock;
  /** Sent as `User-Agent`. */
  readonly userAgent: string;
  /** Where requests are measured. Default: nowhere. */
  readonly metrics?: Metrics;
  /** No connection for this long, name look-up included, is a failure. Default: `connect` of the default timings. */
  readonly connectLimit?: Millis;
  /** Called with each address to which the server's name was resolved, before a connection to it. Default: ignored. */
  readonly onAddress?: ((address: string) => void) | undefined;
}

/** No answer and no byte of a list for this long: the connection is dead. */
const answerLimit = seconds(60);
/** A refusal's text is for people. */
const maxRefusalBytes = 16_384;

/**
 * A client over node:http or node:https. TCP keep-alive finds a dead peer in about 40 s, even while a
 * watch is silent. It sends no Accept-Encoding: a page is parsed faster than unzipped. Without that header an API
 * server never compresses, not even a watch that lists first (1.37 and later: WatchListCompression).
 */
export function newApiClient(connection: ApiServerConnection, options: ApiClientOptions): ApiClient {
  const { url } = connection;
  const { connectLimit = defaultTimings.connect } = options;
  const agent = newApiAgent(connection, { keepAlive: true, keepAliveMsecs: 30_000 });
  const measured = new RequestMetrics(url, options);
  return {
    async get(request, use, signal) {
      signal.throwIfAborted();
      const measure = measured.begin('GET', request.query.get('watch') === 'true');
      using timer = startInactivityTimer(options.clock, answerLimit);
      const target = `${url.pathname.replace(/\/$/, '')}${request.path}?${request.query.toString()}`;
      const name = `GET ${target}`;
      const response = await fetchOnce(
        { ...options, connection, agent, target, name, timer, measure, connectLimit },
        signal,
      );
      try {
        if (response.statusCode !== 200) throw await refusal(name, response, connection);
        return await use({
          request: name,
          chunks: () => readBody(name, response, timer, signal),
          setInactivity: (limit) => timer.restart(limit),
        });
      } finally {
        measure.ended();
        if (!response.complete) response.destroy();
      }
    },
    [Symbol.asyncDispose]: () => {
      agent.destroy();
      return Promise.resolve();
    },
  };
}

interface Call {
  readonly connection: ApiServerConnection;
  readonly agent: http.Agent;
  readonly target: string;
  readonly name: string;
  readonly timer: InactivityTimer;
  readonly measure: RequestMeasure;
  readonly connectLimit: Millis;
  readonly userAgent: string;
  readonly onAddress?: ((address: string) => void) | undefined;
}

/** Sends a request; once more when a kept-alive connection turned out to be closed by the server. */
async function fetchOnce(call: Call, signal: AbortSignal): Promise<http.IncomingMessage> {
  const authorization = await call.connection.credentials.authorization(signal);
  for (;;) {
    let request: http.ClientRequest | undefined;
    let connecting: Connecting | undefined;
    try {
      request = start(call, authorization, AbortSignal.any([signal, call.timer.signal]));
      connecting = limitConnecting(request, call);
      const response = await answer(request);
      call.measure.answered(response.statusCode);
      return response;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      call.measure.answered(undefined);
      if (call.timer.signal.aborted) throw brokenOff(call.name, connecting?.missing() ?? 'no answer');
      if (request?.reusedSocket === true && isReset(error)) continue;
      throw brokenOff(call.name, 'no answer', error);
    }
  }
}

function start(call: Call, authorization: string | undefined, signal: AbortSignal): http.ClientRequest {
  const { url } = call.connection;
  const module = url.protocol === 'https:' ? https : http;
  return module
    .request({
      protocol: url.protocol,
      hostname: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port,
      path: call.target,
      agent: call.agent,
      signal,
      headers: {
        accept: 'application/json',
        'user-agent': call.userAgent,
        ...(authorization === undefined ? {} : { authorization }),
      },
    })
    .end();
}

/** What a request waits for. */
interface Connecting {
  /** In words, for when it did not come. */
  missing(): string;
}

/** A new connection must be there soon; only then the server has its time to answer. */
function limitConnecting(request: http.ClientRequest, { timer, connectLimit, onAddress }: Call): Connecting {
  let isConnecting = false;
  request.once('socket', (socket) => {
    if (!socket.connecting) return;
    isConnecting = true;
    socket.on('lookup', (error, address) => error === null && onAddress?.(address));
    timer.restart(connectLimit);
    socket.once('connect', () => {
      isConnecting = false;
      timer.restart(answerLimit);
    });
  });
  return {
    missing: () =>
      isConnecting ? `no connection within ${connectLimit / 1000} s` : `no answer within ${answerLimit / 1000} s`,
  };
}

function answer(request: http.ClientRequest): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    // The error listener stays: an abort after the answer must not end the process.
    request.on('error', reject).on('response', resolve);
  });
}

function isReset(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}

async function refusal(name: string, response: http.IncomingMessage, connection: ApiServerConnection): Promise<Error> {
  const status = response.statusCode ?? 0;
  if (status === 401) connection.credentials.forget();
  let body = '';
  try {
    for await (const chunk of response.setEncoding('utf8')) {
      body += chunk as string; // setEncoding makes it text
      if (body.length > maxRefusalBytes) break;
    }
  } catch {
    // the status alone says enough
  }
  return failureFrom({ request: name, status, retryAfter: response.headers['retry-after'], body });
}

async function* readBody(
  name: string,
  response: http.IncomingMessage,
  timer: InactivityTimer,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const encoding = response.headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') throw brokenOff(name, `the body has the encoding ${encoding}, which was not asked for`);
  try {
    for await (const chunk of response) {
      timer.touch();
      yield chunk as Buffer; // no encoding is set
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (timer.signal.reason === inactive) throw fellSilent(name);
    throw isReset(error) ? cutOff(name) : brokenOff(name, 'the answer broke off', error);
  }
  if (!response.complete) throw cutOff(name);
}
