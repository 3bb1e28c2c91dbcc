import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { createServer, type Server } from 'node:net';
import type { Duplex } from 'node:stream';
import { requireClock, requireFields, requireNumber } from '../base/argument.ts';
import { HostError, InvariantError } from '../base/errors.ts';
import type { IpAddress, IpFamily } from '../model/ip/address.ts';
import { addressAndPort, type Port } from '../model/ip/port.ts';
import { type Clock, type Millis, seconds, systemClock } from '../base/time.ts';
import { ConnectionPool, type ClientPlace, FairTurns } from './connection-pool.ts';
import { HeldInput, HttpConnection } from './http-connection.ts';
import { type HttpHandler, type HttpAnswer, type HttpStream, textAnswer, type HttpRequest } from './http-answer.ts';

/**
 * One socket to listen on. `any` is every address of the family, and only of that family. `both` means the families that
 * the machine has.
 */
export interface ListenTarget {
  readonly ipFamily: IpFamily | 'both';
  readonly address: IpAddress | 'any';
  readonly port: Port;
}

/** An open socket. Disposing closes it and every connection at once. */
export interface HttpSocket extends AsyncDisposable {
  /**
   * Frees the address and port at once. Open connections get one more answer and are closed with it; a
   * silent one ends after five seconds. Resolves when all have ended, at the latest when the socket is disposed.
   */
  release(): Promise<void>;
}

/** Opens HTTP servers. */
export interface HttpListener {
  /** Rejects with `HostError` when the address or port is not available. */
  listen(target: ListenTarget, handler: HttpHandler): Promise<HttpSocket>;
}

/** Limits of client connections. */
export interface HttpLimits {
  /** Limit of open connections of one socket from elsewhere. A new one replaces the one that has waited longest. */
  readonly connections: number;
  /** The same for clients on this node, in addition: slots for the kubelet's probes. */
  readonly connectionsOfNode: number;
  /** Time limit for starting a request, and for sending it from its first byte. */
  readonly requestTime: Millis;
  /** Longest time without progress while a client receives an answer. */
  readonly patience: Millis;
}

/** More than probes, load balancers and scrapers need; a thousand idle connections cost less than 10 MB. */
export const usualHttpLimits: HttpLimits = {
  connections: 1000,
  connectionsOfNode: 100,
  requestTime: seconds(5),
  patience: seconds(60),
};

/** Limit of input that waits for its turn, over all sockets of a listener, in bytes. */
const maxHeldBytes = 8 * 1024 * 1024;

/** A listener on this machine's network. Its sockets share the event loop fairly. Throws `UsageError` for arguments of other types. */
export function createHttpListener(limits: HttpLimits = usualHttpLimits, clock: Clock = systemClock): HttpListener {
  requireFields('createHttpListener: limits', limits, {
    connections: requireNumber,
    connectionsOfNode: requireNumber,
    requestTime: requireNumber,
    patience: requireNumber,
  });
  requireClock('createHttpListener: clock', clock);
  const shared = { limits, clock, turns: new FairTurns(), held: new HeldInput(maxHeldBytes) };
  return { listen: (target, handler) => listen(target, { handler, ...shared }) };
}

interface Serving {
  readonly handler: HttpHandler;
  readonly limits: HttpLimits;
  readonly clock: Clock;
  readonly turns: FairTurns;
  readonly held: HeldInput;
}

async function listen(target: ListenTarget, serving: Serving): Promise<HttpSocket> {
  if (target.ipFamily !== 'both') return open(target, serving);
  try {
    return await open(target, serving);
  } catch (error) {
    const cause: unknown = error instanceof HostError ? error.cause : undefined;
    const code = cause instanceof Error && 'code' in cause ? cause.code : '';
    // Otherwise the kernel has no IPv6, or it is switched off.
    if (code !== 'EAFNOSUPPORT' && code !== 'EADDRNOTAVAIL') throw error;
    return open({ ...target, ipFamily: 'IPv4' }, serving);
  }
}

function open(target: ListenTarget, serving: Serving): Promise<HttpSocket> {
  const { limits, clock, turns, held } = serving;
  const { connections, connectionsOfNode, requestTime, patience } = limits;
  const pools = {
    elsewhere: new ConnectionPool({ connections, requestTime }, clock),
    node: new ConnectionPool({ connections: connectionsOfNode, requestTime }, clock),
  };
  const closing = { hasBegun: false };
  const http = httpServer(serving, closing);
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const place = placeOf(socket);
    http.emit('connection', new HttpConnection(socket, { place, pool: pools[place], turns, held, patience }));
  });
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(listenFailed(target, cause)));
    server.once('listening', () => {
      server.removeAllListeners('error');
      server.on('error', () => undefined); // a failed accept concerns one client, which sees it itself
      resolve(socketOf(server, closing, Object.values(pools)));
    });
    server.listen({
      host: hostOf(target),
      port: target.port,
      ipv6Only: target.ipFamily === 'IPv6',
      exclusive: true,
    });
  });
}

/** Returns Node's HTTP server for connections that another server accepts. */
function httpServer({ handler, limits, turns }: Serving, closing: Closing): HttpServer {
  // The pools enforce the time-outs. Node writes this one into its answers (Keep-Alive: timeout=5).
  const timeouts = { keepAliveTimeout: limits.requestTime, headersTimeout: 0, requestTimeout: 0 };
  return createHttpServer(timeouts, (request, response) => {
    const connection = request.socket as Duplex;
    if (!(connection instanceof HttpConnection)) throw new InvariantError('a request without its connection');
    connection.begin(request, response);
    if (closing.hasBegun) response.shouldKeepAlive = false;
    void answerRequest({ connection, request, response, turns }, handler);
  });
}

/** Once begun, each connection is closed with its next answer. */
interface Closing {
  hasBegun: boolean;
}

/** The addresses of a connection's two ends; undefined once it is closed. */
interface ConnectionEnds {
  readonly remoteAddress?: string | undefined;
  readonly localAddress?: string | undefined;
}

/** Returns the place of a client. For a connection to an address of this node, the kernel uses that address as the source. */
export function placeOf({ remoteAddress, localAddress }: ConnectionEnds): ClientPlace {
  const isLoopback = remoteAddress === '::1' || /^(::ffff:)?127\./.test(remoteAddress ?? '');
  return isLoopback || (remoteAddress !== undefined && remoteAddress === localAddress) ? 'node' : 'elsewhere';
}

function socketOf(server: Server, closing: Closing, pools: readonly ConnectionPool[]): HttpSocket {
  const ended = Promise.withResolvers<void>();
  const release = (): Promise<void> => {
    if (!closing.hasBegun) server.close(() => ended.resolve());
    closing.hasBegun = true;
    return ended.promise;
  };
  return {
    release,
    [Symbol.asyncDispose]: () => {
      const closed = release();
      for (const pool of pools) pool.cutAll();
      return closed;
    },
  };
}

function hostOf(target: ListenTarget): string {
  if (target.address !== 'any') return target.address;
  return target.ipFamily === 'IPv4' ? '0.0.0.0' : '::';
}

function listenFailed(target: ListenTarget, cause: Error): HostError {
  const place = addressAndPort(hostOf(target), target.port);
  const reason = cause.message.replace(/^listen E[A-Z0-9]+: (.+?)(?: \S+:\d+)?$/, '$1'); // the message names the place already
  return new HostError('host.listen', `cannot listen on ${place}: ${reason}`, { cause });
}

/** Longest body of a request; PUT /debug/flags/v needs a few bytes. */
const maxBodyBytes = 64 * 1024;

interface HttpExchange {
  readonly connection: HttpConnection;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly turns: FairTurns;
}

/** Answers a request: in the same turn if it has no body and the handler answers at once. Never rejects. */
async function answerRequest(exchange: HttpExchange, handler: HttpHandler): Promise<void> {
  const { connection, request, response } = exchange;
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const { 'transfer-encoding': coding, 'content-length': length = '0' } = request.headers;
  const body = coding !== undefined || length !== '0' ? await readBody(request) : { text: '' };
  if (body === 'gone') return void connection.cut();
  const reply = body === 'tooLong' ? tooLong : handler(parse(request, body.text, connection.client), gone.signal);
  const given = reply instanceof Promise ? await reply : reply;
  if (gone.signal.aborted) return;
  connection.beginSending();
  if ('body' in given) return sendAnswer(exchange, given);
  await sendStream(exchange, given, gone.signal);
}

function sendAnswer({ request, response }: HttpExchange, { status, headers, body }: HttpAnswer): void {
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) });
  response.end(request.method === 'HEAD' ? undefined : body);
}

async function sendStream(exchange: HttpExchange, reply: HttpStream, gone: AbortSignal): Promise<void> {
  const { connection, request, response, turns } = exchange;
  response.writeHead(reply.status, reply.headers);
  if (request.method === 'HEAD') return void response.end();
  try {
    for await (const piece of reply.pieces) {
      await send(response, piece);
      if (gone.aborted) return;
      connection.beginSending(); // the client has received something
      await turns.next(connection.place);
      if (gone.aborted) return;
    }
    response.end();
  } catch {
    response.destroy(); // the client must not take a part for the whole; the producer of the pieces logs the error
  }
}

/** Closes the connection, since the rest of the body is still arriving. */
const tooLong: HttpAnswer = textAnswer(413, `the body is longer than ${maxBodyBytes} bytes\n`, { Connection: 'close' });

function parse(request: IncomingMessage, body: string, client: string | undefined): HttpRequest {
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
    client,
  };
}

/** Resolves when the kernel has accepted the piece, or the client has disconnected. */
function send(response: ServerResponse, piece: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    response.write(piece, () => resolve());
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
