import * as http from 'node:http';
import * as https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { UsageError } from '../base/errors.ts';

/** One request that waits for its answer. */
export class Exchange {
  readonly method: string;
  /** Path and query as sent. */
  readonly target: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: http.IncomingHttpHeaders;
  /** Local port of the client: equal ports mean a reused connection. */
  readonly clientPort: number;
  /** The server's side of the connection. */
  readonly socket: Socket;
  readonly #response: http.ServerResponse;

  constructor(request: http.IncomingMessage, response: http.ServerResponse) {
    this.method = request.method ?? '';
    this.target = request.url ?? '';
    const url = new URL(this.target, 'http://server');
    this.path = url.pathname;
    this.query = url.searchParams;
    this.headers = request.headers;
    this.socket = request.socket;
    this.clientPort = request.socket.remotePort ?? 0;
    this.#response = response;
  }

  /** Resolves when either side has ended the connection or the answer. */
  get closed(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#response.closed) resolve();
      else this.#response.once('close', resolve);
    });
  }

  /** A whole answer. Objects are sent as JSON, texts as text/plain. */
  answer(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
    const isText = typeof body === 'string';
    this.#response.writeHead(status, { 'content-type': isText ? 'text/plain' : 'application/json', ...headers });
    this.#response.end(isText ? body : JSON.stringify(body));
  }

  /** Begins a chunked answer; headers go out at once. */
  stream(headers: Readonly<Record<string, string>> = {}): this {
    this.#response.writeHead(200, { 'content-type': 'application/json', ...headers });
    this.#response.flushHeaders();
    return this;
  }

  /** Sends watch events, each as one line, in one write. */
  send(...events: readonly unknown[]): this {
    return this.write(events.map((event) => `${JSON.stringify(event)}\n`).join(''));
  }

  /** Sends bytes as they are. */
  write(bytes: string | Buffer): this {
    this.#response.write(bytes);
    return this;
  }

  /** Whether what was written waits for the client to read. */
  get needsDrain(): boolean {
    return this.#response.writableNeedDrain;
  }

  /** Resolves when the client has read what was written, or has gone. */
  get drained(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#response.once('drain', resolve).once('close', resolve);
    return promise.finally(() => this.#response.off('drain', resolve).off('close', resolve));
  }

  /** Ends the answer with its chunk terminator, as on `timeoutSeconds`. */
  end(): void {
    this.#response.end();
  }

  /** Closes the connection without the terminator, as when the server is killed. */
  cut(): void {
    this.#response.socket?.end();
    this.#response.socket?.destroySoon();
  }

  /** Resets the connection (RST). */
  reset(): void {
    this.#response.socket?.resetAndDestroy();
  }
}

/** How to serve. */
export interface ScriptedApiServerOptions {
  /** Serve TLS with these; without them plain HTTP. */
  readonly tls?: https.ServerOptions;
  /** A fixed port, to come back on the same one. */
  readonly port?: number;
}

/**
 * A web server on loopback that answers nothing by itself: a test takes each request with `next` and
 * says what happens to it. Paths given to `serve` are answered by a function instead.
 */
export class ScriptedApiServer implements AsyncDisposable {
  readonly #server: http.Server;
  readonly #scheme: string;
  readonly #waiting = new Map<string, Exchange[]>();
  readonly #takers = new Map<string, ((exchange: Exchange) => void)[]>();
  readonly #handlers = new Map<string, (exchange: Exchange) => void>();
  /** Every request so far. */
  readonly requests: Exchange[] = [];

  private constructor(server: http.Server, scheme: string) {
    this.#server = server;
    this.#scheme = scheme;
    server.on('request', (request, response) => this.#accept(new Exchange(request, response)));
  }

  /** Starts listening on 127.0.0.1. */
  static async listen({ tls, port = 0 }: ScriptedApiServerOptions = {}): Promise<ScriptedApiServer> {
    const server = tls === undefined ? http.createServer() : https.createServer(tls);
    const scripted = new ScriptedApiServer(server, tls === undefined ? 'http' : 'https');
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, '127.0.0.1', resolve);
    });
    return scripted;
  }

  get url(): URL {
    return new URL(`${this.#scheme}://127.0.0.1:${this.port}`);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port; // it listens on TCP
  }

  /** Returns the oldest untaken request for `path`, or the next one. */
  next(path: string): Promise<Exchange> {
    if (this.#handlers.has(path)) throw new UsageError('testing.served', `${path} is answered by a handler`);
    const waiting = this.#waiting.get(path)?.shift();
    if (waiting !== undefined) return Promise.resolve(waiting);
    return new Promise((resolve) => {
      this.#takers.set(path, [...(this.#takers.get(path) ?? []), resolve]);
    });
  }

  /** Lets a function answer all requests for `path` from now on. */
  serve(path: string, handler: (exchange: Exchange) => void): void {
    this.#handlers.set(path, handler);
  }

  #accept(exchange: Exchange): void {
    this.requests.push(exchange);
    const handler = this.#handlers.get(exchange.path);
    if (handler !== undefined) return handler(exchange);
    const taker = this.#takers.get(exchange.path)?.shift();
    if (taker !== undefined) return taker(exchange);
    this.#waiting.set(exchange.path, [...(this.#waiting.get(exchange.path) ?? []), exchange]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    this.#server.closeAllConnections();
    await closed;
  }
}

/** The bookmark that ends a WatchList's initial events. */
export function initialEventsEnd(resourceVersion: string): object {
  return {
    type: 'BOOKMARK',
    object: { metadata: { resourceVersion, annotations: { 'k8s.io/initial-events-end': 'true' } } },
  };
}

/** Answers a WatchList with `objects` and leaves the watch open. */
export function serveWatchList(exchange: Exchange, resourceVersion: string, objects: readonly object[] = []): Exchange {
  const added = objects.map((object) => ({ type: 'ADDED', object }));
  return exchange.stream().send(...added, initialEventsEnd(resourceVersion));
}
