import {
  type HttpHandler,
  type HttpReply,
  type HttpRequest,
  type HttpStream,
  textAnswer,
} from '@switchyard/core/health';
import { type Logger, messageOf, type Millis, seconds } from '@switchyard/core';
import { SlowReaderError } from '../metrics/shared-pages.ts';

type HttpMethod = 'GET' | 'PUT' | 'DELETE';

/** One endpoint. */
export interface Route {
  /** Compared as it is; no trailing slash is added or taken away. */
  readonly path: string;
  /** `any` for endpoints of load balancers, which use various methods. `GET` includes `HEAD`. */
  readonly methods: 'any' | readonly HttpMethod[];
  readonly answer: HttpHandler;
}

/** Creates the route of an endpoint that is only read. */
export function get(path: string, answer: HttpHandler): Route {
  return { path, methods: ['GET'], answer };
}

/**
 * Answers by path and method: 404 for an unknown path, 405 for a method that the path does not take, 500 for an
 * endpoint that fails, which is also logged.
 */
export function router(routes: readonly Route[], logger: Logger): HttpHandler {
  const byPath = new Map(routes.map((route) => [route.path, route]));
  return (request, signal) => {
    const route = byPath.get(request.path);
    if (route === undefined) return textAnswer(404, '404 page not found\n');
    const { methods } = route;
    const allowed =
      methods === 'any' ? [request.method] : methods.flatMap((one) => (one === 'GET' ? ['GET', 'HEAD'] : [one]));
    if (!allowed.includes(request.method)) {
      const allow = allowed.join(', ');
      return textAnswer(405, `405 ${request.path} takes ${allow}\n`, { Allow: allow });
    }
    return answerSafely(route, { request, logger }, signal);
  };
}

/** Calls an endpoint and handles its failure. Synchronous if the endpoint is. */
function answerSafely(
  route: Route,
  { request, logger }: { readonly request: HttpRequest; readonly logger: Logger },
  signal: AbortSignal,
): HttpReply | Promise<HttpReply> {
  const note = (error: unknown): void => {
    if (!signal.aborted && !(error instanceof SlowReaderError))
      logger.error('endpoint failed', { path: route.path, error });
  };
  const failed = (error: unknown): HttpReply => {
    note(error);
    return textAnswer(500, `500 ${messageOf(error)}\n`);
  };
  const watched = (reply: HttpReply): HttpReply =>
    'body' in reply ? reply : { ...reply, pieces: notingFailure(reply.pieces, note) };
  try {
    const reply = route.answer(request, signal);
    return reply instanceof Promise ? reply.then(watched, failed) : watched(reply);
  } catch (error) {
    return failed(error);
  }
}

async function* notingFailure(
  pieces: HttpStream['pieces'],
  note: (error: unknown) => void,
): AsyncGenerator<string | Uint8Array, void, undefined> {
  try {
    yield* pieces;
  } catch (error) {
    note(error);
    throw error;
  }
}

/** A client of a stream that has gone is noticed by a write that fails; so often something is written. */
export const streamHeartbeat: Millis = seconds(10);

/** Answers with a stream. Nothing runs before the first piece: an answer to HEAD has none. */
export type StreamAnswer = (contentType: string, pieces: () => AsyncIterable<string>) => HttpReply;

/** Limits streams to `most` at a time; a further one gets 429. `subject` is for its text. */
export function limitedStreams(most: number, subject: string): StreamAnswer {
  let open = 0;
  async function* counted(pieces: () => AsyncIterable<string>): AsyncGenerator<string, void> {
    open++;
    try {
      yield* pieces();
    } finally {
      open--;
    }
  }
  return (contentType, pieces) =>
    open >= most
      ? textAnswer(429, `429 ${most} others watch ${subject}; try again later\n`)
      : { status: 200, headers: { 'Content-Type': contentType }, pieces: counted(pieces) };
}

/** Limits `handler` to one request at a time; concurrent requests get 429. For expensive endpoints. */
export function oneAtATime(handler: HttpHandler): HttpHandler {
  let isBusy = false;
  return async (request, signal) => {
    if (isBusy) return textAnswer(429, `429 ${request.path} is busy with another request; try again\n`);
    isBusy = true;
    try {
      return await handler(request, signal);
    } finally {
      isBusy = false;
    }
  };
}
