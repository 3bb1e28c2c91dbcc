import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { HostError } from '../errors.ts';
import type { IpAddress, IpFamily } from '../ip/address.ts';
import type { Port } from '../ip/port.ts';
import type { HttpAnswer } from './http-answer.ts';

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
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Names in lower case; of a repeated header the first. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Empty when there is none. */
  readonly body: string;
}

/** Answers one request. Must neither throw nor reject. `HEAD` is answered as `GET`; the listener leaves the body out. */
export type HttpHandler = (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>;

/** Opens HTTP servers. Disposing what `listen` returned closes the socket and every connection at once. */
export interface HttpListener {
  /** Rejects with `HostError` when the address or port cannot be had. */
  listen(target: ListenTarget, handler: HttpHandler): Promise<AsyncDisposable>;
}

/** The listener on this machine's network. */
export const httpListener: HttpListener = { listen };

async function listen(target: ListenTarget, handler: HttpHandler): Promise<AsyncDisposable> {
  if (target.ipFamily !== 'both') return open(target, handler);
  try {
    return await open(target, handler);
  } catch (error) {
    if (!isWithoutIpv6(error)) throw error;
    return open({ ...target, ipFamily: 'IPv4' }, handler);
  }
}

function open(target: ListenTarget, handler: HttpHandler): Promise<AsyncDisposable> {
  const server = createServer((request, response) => {
    void answer(request, response, handler);
  });
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(listenFailed(target, cause)));
    server.once('listening', () => {
      server.removeAllListeners('error');
      server.on('error', () => undefined); // a failed accept concerns one client, which sees it itself
      resolve({ [Symbol.asyncDispose]: close });
    });
    server.listen({
      host: hostOf(target),
      port: target.port,
      ipv6Only: target.ipFamily === 'IPv6',
      exclusive: true,
    });
  });
}

/** More than any request of ours needs. */
const maxBodyBytes = 64 * 1024;

async function answer(request: IncomingMessage, response: ServerResponse, handler: HttpHandler): Promise<void> {
  const body = await readBody(request);
  if (body === undefined) return void request.socket.destroy();
  const url = new URL(request.url ?? '/', 'http://unused');
  const { method = 'GET' } = request;
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]),
  );
  const given = await handler({ method, path: url.pathname, query: url.searchParams, headers, body });
  response.writeHead(given.status, { ...given.headers, 'Content-Length': Buffer.byteLength(given.body) });
  response.end(method === 'HEAD' ? undefined : given.body);
}

/** Undefined: it is too long, or its sender went away. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBodyBytes) return undefined;
      chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks).toString('utf8');
}

function hostOf(target: ListenTarget): string {
  if (target.address !== 'any') return target.address;
  return target.ipFamily === 'IPv4' ? '0.0.0.0' : '::';
}

function listenFailed(target: ListenTarget, cause: Error): HostError {
  const host = hostOf(target);
  const place = host.includes(':') ? `[${host}]:${target.port}` : `${host}:${target.port}`;
  return new HostError('host.listen', `cannot listen on ${place}: ${cause.message}`, { cause });
}

/** The kernel has no IPv6, or it is switched off. */
function isWithoutIpv6(error: unknown): boolean {
  const cause: unknown = error instanceof HostError ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && (cause.code === 'EAFNOSUPPORT' || cause.code === 'EADDRNOTAVAIL');
}
