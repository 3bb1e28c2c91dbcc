import { addressAndPort } from '../ip/port.ts';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';
import { HostError } from '../errors.ts';
import type { IpAddress, IpFamily } from '../ip/address.ts';
import type { Port } from '../ip/port.ts';
import { type Millis, seconds } from '../time.ts';
import { type HttpAnswer, type HttpStream, textAnswer } from './http-answer.ts';

/**
 * One socket to listen on. `any` is every address of the family, and only of that family; of `both`
 * families it takes what the machine has.
 */
export interface ListenTarget {
  readonly ipFamily: IpFamily | 'both';
  readonly address: IpAddress | 'any';
  readonly port: Port;
}

/** One request, its body already read. */
export interface HttpRequest {
  /** In upper case. */
  readonly method: string;
  /** As sent: neither decoded nor normalised, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Names in lower case; of a repeated header the first. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Empty when there is none. */
  readonly body: string;
}

/** What a handler may answer. */
export type HttpReply = HttpAnswer | HttpStream;

/**
 * Answers one request. Must neither throw nor reject. `HEAD` is answered as `GET`; the listener leaves the body out.
 * `signal` aborts when the client has gone away, and with the server.
 */
export type HttpHandler = (request: HttpRequest, signal: AbortSignal) => HttpReply | Promise<HttpReply>;

/** An open socket. Disposing closes it and every connection at once. */
export interface HttpSocket extends AsyncDisposable {
  /**
   * Gives the address and port back, at once. Connections that are open get one more answer and are closed with it; a
   * silent one ends after five seconds. Resolves when all have ended, at the latest when the socket is disposed.
   */
  release(): Promise<void>;
}

/** Opens HTTP servers. */
export interface HttpListener {
  /** Rejects with `HostError` when the address or port cannot be had. */
  listen(target: ListenTarget, handler: HttpHandler): Promise<HttpSocket>;
}

/** What clients may cost at most. */
export interface HttpLimits {
  /** Open connections of one socket; those beyond it are closed unheard. */
  readonly connections: number;
  /** For how long a client may take to send a request, or to take nothing of its answer; then it is cut. */
  readonly patience: Millis;
}

/** More than probes, load balancers and scrapers need; a thousand idle connections cost less than 10 MB. */
const usualLimits: HttpLimits = { connections: 1000, patience: seconds(60) };

/** A listener on this machine's network. */
export function createHttpListener(limits: HttpLimits): HttpListener {
  return { listen: (target, handler) => listen(target, { handler, limits }) };
}

/** The one with the usual limits. */
export const httpListener: HttpListener = createHttpListener(usualLimits);

/** More than any request of ours needs. */
const maxBodyBytes = 64 * 1024;
const silentConnectionMs = 5000;

interface Serving {
  readonly handler: HttpHandler;
  readonly limits: HttpLimits;
}

async function listen(target: ListenTarget, serving: Serving): Promise<HttpSocket> {
  if (target.ipFamily !== 'both') return open(target, serving);
  try {
    return await open(target, serving);
  } catch (error) {
    if (!isWithoutIpv6(error)) throw error;
    return open({ ...target, ipFamily: 'IPv4' }, serving);
  }
}

function open(target: ListenTarget, { handler, limits }: Serving): Promise<HttpSocket> {
  const { connections, patience } = limits;
  const timeouts = { keepAliveTimeout: silentConnectionMs, headersTimeout: patience, requestTimeout: patience };
  const server = createServer(timeouts, (request, response) => {
    void answer(request, response, handler);
  });
  server.maxConnections = connections;
  server.timeout = patience; // of silence in both directions
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(listenFailed(target, cause)));
    server.once('listening', () => {
      server.removeAllListeners('error');
      server.on('error', () => undefined); // a failed accept concerns one client, which sees it itself
      resolve(socketOf(server));
    });
    server.listen({
      host: hostOf(target),
      port: target.port,
      ipv6Only: target.ipFamily === 'IPv6',
      exclusive: true,
    });
  });
}

function socketOf(server: Server): HttpSocket {
  const ended = Promise.withResolvers<void>();
  let isReleased = false;
  /** Not the method of the HTTP server, which would cut every idle connection. */
  const release = (): void => {
    if (isReleased) return;
    isReleased = true;
    server.prependListener('request', (_, response: ServerResponse) => {
      response.shouldKeepAlive = false;
    });
    NetServer.prototype.close.call(server, () => {
      server.close(() => undefined); // nothing but the timer that looks for slow requests is left
      ended.resolve();
    });
  };
  return {
    release: () => {
      release();
      return ended.promise;
    },
    [Symbol.asyncDispose]: () => {
      release();
      server.closeAllConnections();
      return ended.promise;
    },
  };
}

async function answer(request: IncomingMessage, response: ServerResponse, handler: HttpHandler): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  response.on('timeout', () => {
    if (response.headersSent) response.destroy(); // before that it is the handler who takes his time
  });
  const body = await readBody(request);
  if (body === 'gone') return void request.socket.destroy();
  const reply = body === 'tooLong' ? tooLong : await handler(parse(request, body.text), gone.signal);
  const isHead = request.method === 'HEAD';
  if ('body' in reply) {
    response.writeHead(reply.status, { ...reply.headers, 'Content-Length': Buffer.byteLength(reply.body) });
    response.end(isHead ? undefined : reply.body);
    return;
  }
  response.writeHead(reply.status, reply.headers);
  if (isHead) return void response.end();
  try {
    for await (const piece of reply.pieces) {
      await send(response, piece);
      if (gone.signal.aborted) return;
    }
    response.end();
  } catch {
    response.destroy(); // whoever made the pieces knows why; the client must not take this for a whole answer
  }
}

/** Closing the connection, because the rest of the body is still on its way. */
const tooLong: HttpAnswer = textAnswer(413, `the body is longer than ${maxBodyBytes} bytes\n`, { Connection: 'close' });

function parse(request: IncomingMessage, body: string): HttpRequest {
  const { method = 'GET', url = '/' } = request;
  const at = url.indexOf('?');
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]),
  );
  return {
    method,
    path: at < 0 ? url : url.slice(0, at),
    query: new URLSearchParams(at < 0 ? '' : url.slice(at)),
    headers,
    body,
  };
}

/** Resolves when the kernel has taken the piece, or the client has gone away, and others have had their turn. */
function send(response: ServerResponse, piece: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    response.write(piece, () => void setImmediate(resolve));
  });
}

async function readBody(request: IncomingMessage): Promise<{ readonly text: string } | 'tooLong' | 'gone'> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBodyBytes) return 'tooLong';
      chunks.push(chunk);
    }
  } catch {
    return 'gone';
  }
  return { text: Buffer.concat(chunks).toString('utf8') };
}

function hostOf(target: ListenTarget): string {
  if (target.address !== 'any') return target.address;
  return target.ipFamily === 'IPv4' ? '0.0.0.0' : '::';
}

function listenFailed(target: ListenTarget, cause: Error): HostError {
  const place = addressAndPort(hostOf(target), target.port);
  const reason = cause.message.replace(/^listen E[A-Z0-9]+: (.+?)(?: \S+:\d+)?$/, '$1'); // the place is said already
  return new HostError('host.listen', `cannot listen on ${place}: ${reason}`, { cause });
}

/** The kernel has no IPv6, or it is switched off. */
function isWithoutIpv6(error: unknown): boolean {
  const cause: unknown = error instanceof HostError ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && (cause.code === 'EAFNOSUPPORT' || cause.code === 'EADDRNOTAVAIL');
}
