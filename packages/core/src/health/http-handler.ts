import type { HttpAnswer, HttpStream } from './http-answer.ts';

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

/** An answer as one text or in pieces. */
export type HttpReply = HttpAnswer | HttpStream;

/**
 * Answers one request. Must neither throw nor reject. `HEAD` is answered as `GET`; the listener leaves the body out.
 * `signal` aborts when the client disconnects, and with the server.
 */
export type HttpHandler = (request: HttpRequest, signal: AbortSignal) => HttpReply | Promise<HttpReply>;
