import { addressAndPort } from '../model/ip/port.ts';
import { HostError, UsageError } from '../base/errors.ts';
import type { HttpAnswer, HttpHandler, HttpReply, HttpRequest } from '../health/http-answer.ts';
import type { HttpListener, HttpSocket, ListenTarget } from '../health/http-listener.ts';

/** Listens without sockets. As on a machine, a port is had once per address, or once for `any`. */
export class MemoryHttpListener implements HttpListener {
  readonly #handlers = new Map<string, HttpHandler>();
  readonly #taken = new Set<string>();
  /** Every attempt that failed, as `address:port`. */
  readonly refused: string[] = [];

  async listen(target: ListenTarget, handler: HttpHandler): Promise<HttpSocket> {
    const place = placeOf(target);
    if (this.#handlers.has(place) || this.#taken.has(place)) {
      this.refused.push(place);
      throw new HostError('host.listen', `cannot listen on ${place}: address already in use`);
    }
    this.#handlers.set(place, handler);
    const close = async (): Promise<void> => {
      if (this.#handlers.get(place) === handler) this.#handlers.delete(place);
    };
    return { release: close, [Symbol.asyncDispose]: close };
  }

  /** Another program has (or no longer has) `address:port`. */
  setTaken(place: string, isTaken: boolean): void {
    if (isTaken) this.#taken.add(place);
    else this.#taken.delete(place);
  }

  /** The answer at `address:port` to a GET, or undefined without a listener. For handlers that answer at once. */
  get(place: string, path = '/'): HttpAnswer | undefined {
    const answer = this.request(place, getRequest(path));
    if (answer === undefined || 'body' in answer) return answer;
    throw new UsageError('testing.http', `${place}${path} answers later or in pieces: use request()`);
  }

  /** The answer at `address:port`, now or later, or undefined without a listener. */
  request(place: string, request: HttpRequest): HttpReply | Promise<HttpReply> | undefined {
    return this.#handlers.get(place)?.(request, new AbortController().signal);
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

/** A GET of `path`, which may have a query; `more` replaces parts of it. */
export function getRequest(path: string, more: Partial<HttpRequest> = {}): HttpRequest {
  const [name = '', query = ''] = path.split('?');
  return { method: 'GET', path: name, query: new URLSearchParams(query), headers: {}, body: '', ...more };
}

/** A reply with its body whole, however it is made; bytes become characters of the same number (latin1). */
export async function wholeAnswer(reply: HttpReply | Promise<HttpReply> | undefined): Promise<HttpAnswer> {
  const given = await reply;
  if (given === undefined) throw new UsageError('testing.http', 'no listener at this address');
  if ('body' in given) return given;
  let body = '';
  for await (const piece of given.pieces) {
    body += typeof piece === 'string' ? piece : Buffer.from(piece).toString('latin1');
  }
  return { status: given.status, headers: given.headers, body };
}

function placeOf({ ipFamily, address, port }: ListenTarget): string {
  if (address === 'any') return `any-${ipFamily}:${port}`;
  return addressAndPort(address, port);
}
