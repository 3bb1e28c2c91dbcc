import type * as http from 'node:http';
import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { type Clock, type Millis, seconds } from '../base/time.ts';
import { ApiFailure, brokenOff, cutOff, failureFrom, fellSilent, isReset } from './api-failure.ts';
import { newApiAgent, sendRequest, targetOf, measureRequest, type RequestMeasure } from './api-request.ts';
import { type ApiServerConnection, requireClientOptions, requireConnection } from './api-server-connection.ts';
import { defaultTimings } from './resources.ts';
import type { Metrics } from '../metrics/metrics.ts';

/** Path and query of a GET. */
export interface ApiRequest {
  readonly path: string;
  readonly query: URLSearchParams;
  /** Whether the server may compress the body: `Accept-Encoding: gzip`. Default: it may not. */
  readonly takesGzip?: boolean;
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
  /** Sets the longest silence before reading ends with an error. */
  setInactivity(limit: Millis): void;
}

/** GETs on one API server over kept-alive connections. */
export interface ApiClient extends AsyncDisposable {
  /** The body of a 200 answer; disposing it before its end closes the connection. Rejects as `get` does. */
  open(request: ApiRequest, signal: AbortSignal): Promise<ApiBody & AsyncDisposable>;
  /**
   * Calls `use` with the body of a 200 answer, and closes the connection if `use` leaves before the
   * body's end. Any other status rejects with `ApiFailure`, and so does no answer within the inactivity
   * limit; rejects with `signal.reason` when aborted.
   */
  get<T>(request: ApiRequest, use: (body: ApiBody) => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** Options of a client beside the connection. */
export interface ApiClientOptions {
  readonly clock: Clock;
  /** Sent as `User-Agent`. */
  readonly userAgent: string;
  /** Receives measurements of requests. Default: none. */
  readonly metrics?: Metrics;
  /** Time limit of a connection attempt, name look-up included. Default: `connect` of the default timings. */
  readonly connectLimit?: Millis;
  /** Called with each address to which the server's name was resolved, before a connection to it. Default: ignored. */
  readonly onAddress?: ((address: string) => void) | undefined;
  /** Connections to use; destroyed with the client. Default: its own. */
  readonly agent?: http.Agent;
}

/** Time limit for an answer and for the next byte of a list. */
const answerLimit = seconds(60);
/** Half of an object is `managedFields`. A server that cannot omit it takes the second type (KEP-5958, alpha in 1.37). */
const accept = { accept: 'application/json;drop=metadata.managedFields,application/json' };
/** Longest text that is read of a refusal, in bytes. */
const maxRefusalBytes = 16_384;

/**
 * A client over node:http or node:https. TCP keep-alive finds a dead peer in about 40 s, even while a
 * watch is silent. Throws `UsageError` for arguments of other types.
 */
export function newApiClient(connection: ApiServerConnection, options: ApiClientOptions): ApiClient {
  requireConnection('newApiClient: connection', connection);
  requireClientOptions('newApiClient: options', options);
  const { url } = connection;
  const { connectLimit = defaultTimings.connect } = options;
  const agent = options.agent ?? newApiAgent(connection, { keepAlive: true, keepAliveMsecs: 30_000 });
  const open: ApiClient['open'] = async (request, signal) => {
    signal.throwIfAborted();
    const measure = measureRequest({ url, method: 'GET', isWatch: request.query.get('watch') === 'true' }, options);
    const timer = startInactivityTimer(options.clock, answerLimit);
    const target = targetOf(url, `${request.path}?${request.query.toString()}`);
    const name = `GET ${target}`;
    let response: http.IncomingMessage | undefined;
    const close = (): Promise<void> => {
      if (response !== undefined) measure.ended();
      if (response?.complete === false) response.destroy();
      timer[Symbol.dispose]();
      return Promise.resolve();
    };
    try {
      const headers = request.takesGzip === true ? { ...accept, 'accept-encoding': 'gzip' } : accept;
      const call = { ...options, connection, agent, target, name, headers, timer, measure, connectLimit };
      const answered = (response = await fetchOnce(call, signal));
      if (answered.statusCode !== 200) throw await refusal(name, answered, connection);
      return {
        request: name,
        chunks: () => readBody(name, answered, timer, signal),
        setInactivity: (limit) => timer.restart(limit),
        [Symbol.asyncDispose]: close,
      };
    } catch (error) {
      await close();
      throw error;
    }
  };
  return {
    open,
    async get(request, use, signal) {
      await using body = await open(request, signal);
      return await use(body);
    },
    [Symbol.asyncDispose]: () => {
      agent.destroy();
      return Promise.resolve();
    },
  };
}

interface Call extends ApiClientOptions {
  readonly connection: ApiServerConnection;
  readonly agent: http.Agent;
  readonly target: string;
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timer: InactivityTimer;
  readonly measure: RequestMeasure;
  readonly connectLimit: Millis;
}

/** Sends a request and measures each attempt. Rejects with `ApiFailure`. */
async function fetchOnce(call: Call, signal: AbortSignal): Promise<http.IncomingMessage> {
  const { connection, target, userAgent, agent, headers, timer, measure, name } = call;
  let missing: (() => string) | undefined;
  const onAttempt = (attempt: http.ClientRequest): void => {
    if (missing !== undefined) measure.answered(undefined); // the attempt before
    missing = limitConnecting(attempt, call);
  };
  const request = { method: 'GET', target, userAgent, agent, headers, onAttempt };
  try {
    const response = await sendRequest(connection, request, AbortSignal.any([signal, timer.signal]));
    measure.answered(response.statusCode);
    return response;
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    measure.answered(undefined);
    throw timer.signal.aborted ? brokenOff(name, missing?.() ?? 'no answer') : brokenOff(name, 'no answer', error);
  }
}

/**
 * Limits the time for a new connection; the limit for the answer starts once it is open. Returns a function that describes
 * what is missing, for an error message.
 */
function limitConnecting(request: http.ClientRequest, { timer, connectLimit, onAddress }: Call): () => string {
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
  return () =>
    isConnecting ? `no connection within ${connectLimit / 1000} s` : `no answer within ${answerLimit / 1000} s`;
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
    // the status suffices
  }
  return failureFrom({ request: name, status, retryAfter: response.headers['retry-after'], body });
}

async function* readBody(
  name: string,
  response: http.IncomingMessage,
  timer: InactivityTimer,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of decoded(response, name)) {
      timer.touch();
      yield chunk as Buffer; // no encoding is set
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (timer.signal.reason === inactive) throw fellSilent(name);
    if (error instanceof ApiFailure) throw error;
    throw isReset(response.errored ?? error) ? cutOff(name) : brokenOff(name, 'the answer broke off', error);
  }
  if (!response.complete) throw cutOff(name);
}

/** The body without its encoding. A watch has a gzip member for each time the server sent something (1.37). */
function decoded(response: http.IncomingMessage, name: string): Readable {
  const encoding = response.headers['content-encoding'] ?? 'identity';
  if (encoding === 'identity') return response;
  if (encoding !== 'gzip') throw brokenOff(name, `the body has the unknown encoding ${encoding}`);
  return pipeline(response, createGunzip({ chunkSize: 65_536 }), () => undefined); // the reader gets the error
}

/** One line of a watch. */
export type WatchEvent =
  | { readonly kind: 'changed'; readonly object: RawObject }
  | { readonly kind: 'deleted'; readonly object: RawObject }
  /** Carries a version only; its object is an empty shell. */
  | { readonly kind: 'bookmark'; readonly resourceVersion: string; readonly isInitialEventsEnd: boolean }
  | { readonly kind: 'error'; readonly error: ApiFailure };

/** An API object of any kind, as parsed. */
export interface RawObject {
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly resourceVersion?: string;
    readonly annotations?: Readonly<Record<string, string>> | null;
  };
}

/** Longest line of a watch. etcd limits objects to about 1.5 MiB. */
const maxLineBytes = 32 * 1024 * 1024;
const newline = 10;

/**
 * Joins chunks and cuts them at newlines (byte 10), not at chunk borders: one chunk may hold many lines
 * or half of one. Yields the complete lines of each chunk together, without their newlines; they are
 * views, valid until the next step. Throws `ApiFailure` when the last line has no newline.
 */
export async function* splitLines(chunks: AsyncIterable<Buffer>, request: string): AsyncGenerator<readonly Buffer[]> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    let start = 0;
    const lines: Buffer[] = [];
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      const tail = chunk.subarray(start, end);
      const line = parts.length === 0 ? tail : Buffer.concat([...parts, tail]);
      if (line.length > 0) lines.push(line);
      parts = [];
      length = 0;
      start = end + 1;
    }
    if (start < chunk.length) {
      parts.push(chunk.subarray(start));
      length += chunk.length - start;
      if (length > maxLineBytes) throw brokenOff(request, `a line is longer than ${maxLineBytes} bytes`);
    }
    if (lines.length > 0) yield lines;
  }
  if (length > 0) throw brokenOff(request, 'the last line is not complete');
}

/** Reads one line of a watch. Throws `ApiFailure` for anything that is not a watch event. */
export function parseWatchLine(line: Buffer, request: string): WatchEvent {
  const { type, object } = parseLine(line, request);
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
      return { kind: 'changed', object };
    case 'DELETED':
      return { kind: 'deleted', object };
    case 'BOOKMARK':
      return {
        kind: 'bookmark',
        resourceVersion: object.metadata?.resourceVersion ?? '',
        isInitialEventsEnd: object.metadata?.annotations?.['k8s.io/initial-events-end'] === 'true',
      };
    case 'ERROR':
      return { kind: 'error', error: errorEvent(object, request) };
    default:
      throw brokenOff(request, `a watch event has the unknown type ${JSON.stringify(type)}`);
  }
}

interface Line {
  readonly type?: unknown;
  readonly object: RawObject;
}

function parseLine(line: Buffer, request: string): Line {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line.toString('utf8'));
  } catch (error) {
    throw brokenOff(request, 'a watch event is not JSON', error);
  }
  const isLine = (value: unknown): value is Line =>
    typeof value === 'object' && value !== null && 'object' in value && typeof value.object === 'object';
  if (!isLine(parsed) || parsed.object === null) throw brokenOff(request, 'a watch event has no object');
  return parsed;
}

/** Returns the error of an ERROR event. Its object is a `Status`, whose code serves as the HTTP status. */
function errorEvent(status: object, request: string): ApiFailure {
  const code = 'code' in status && typeof status.code === 'number' ? status.code : 500;
  return failureFrom({ request, status: code, retryAfter: undefined, body: JSON.stringify(status) });
}

interface InactivityTimer extends Disposable {
  /** Aborts after `limit` without a `touch`. */
  readonly signal: AbortSignal;
  /** Notes activity. Cheap: called for every chunk. */
  touch(): void;
  /** Starts again with another limit. */
  restart(limit: Millis): void;
}

/** The reason of an inactivity timer's abort. */
export const inactive: unique symbol = Symbol('inactive');

/** Returns a running timer; disposal stops it. */
export function startInactivityTimer(clock: Clock, limit: Millis): InactivityTimer {
  const expired = new AbortController();
  let current = limit;
  let last = clock.monotonic();
  let stop = new AbortController();

  const run = async (stopped: AbortSignal): Promise<void> => {
    // Wakes once per limit, not once per touch.
    for (let left = current as number; left > 0; left = last + current - clock.monotonic()) {
      await clock.sleep(left as Millis, stopped);
    }
    expired.abort(inactive);
  };
  const start = (): void => {
    run(stop.signal).catch(() => undefined); // rejects only when stopped
  };
  start();
  return {
    signal: expired.signal,
    touch: () => {
      last = clock.monotonic();
    },
    restart: (next) => {
      stop.abort();
      stop = new AbortController();
      current = next;
      start();
    },
    [Symbol.dispose]: () => stop.abort(),
  };
}
