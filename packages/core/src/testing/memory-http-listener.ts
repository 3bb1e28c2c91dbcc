import { HostError, UsageError } from '../errors.ts';
import type { HttpAnswer } from '../health/http-answer.ts';
import type { HttpHandler, HttpListener, HttpRequest, ListenTarget } from '../health/http-listener.ts';

/** Listens without sockets. As on a machine, a port is had once per address, or once for `any`. */
export class MemoryHttpListener implements HttpListener {
  readonly #handlers = new Map<string, HttpHandler>();
  readonly #taken = new Set<string>();
  /** Every attempt that failed, as `address:port`. */
  readonly refused: string[] = [];

  async listen(target: ListenTarget, handler: HttpHandler): Promise<AsyncDisposable> {
    const place = placeOf(target);
    if (this.#handlers.has(place) || this.#taken.has(place)) {
      this.refused.push(place);
      throw new HostError('host.listen', `cannot listen on ${place}: address already in use`);
    }
    this.#handlers.set(place, handler);
    return {
      [Symbol.asyncDispose]: async () => {
        this.#handlers.delete(place);
      },
    };
  }

  /** Another program has (or no longer has) `address:port`. */
  setTaken(place: string, isTaken: boolean): void {
    if (isTaken) this.#taken.add(place);
    else this.#taken.delete(place);
  }

  /** The answer at `address:port` to a GET, or undefined when nobody listens. For handlers that answer at once. */
  get(place: string, path = '/'): HttpAnswer | undefined {
    const answer = this.request(place, getRequest(path));
    if (answer instanceof Promise) throw new UsageError('testing.http', `${place}${path} answers later: use request()`);
    return answer;
  }

  /** The answer at `address:port`, now or later, or undefined when nobody listens. */
  request(place: string, request: HttpRequest): HttpAnswer | Promise<HttpAnswer> | undefined {
    return this.#handlers.get(place)?.(request);
  }

  /** The handler at `address:port`, as a connection that stays open keeps it. */
  handler(place: string): HttpHandler | undefined {
    return this.#handlers.get(place);
  }

  /** All of `address:port` that are listened on, sorted. */
  get places(): readonly string[] {
    return [...this.#handlers.keys()].sort();
  }
}

/** A GET of `path`, which may have a query. */
export function getRequest(path: string): HttpRequest {
  const url = new URL(path, 'http://unused');
  return { method: 'GET', path: url.pathname, query: url.searchParams, headers: {}, body: '' };
}

function placeOf({ ipFamily, address, port }: ListenTarget): string {
  if (address === 'any') return `any-${ipFamily}:${port}`;
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}
