import type { Millis } from '@switchyard/core';

/** Open-loop load: request n is due at start + n / rate, however slow the answers are. */
export interface LoadOptions {
  /**
   * `http://`: an address to GET; a new connection for each request. `tcp://HOST:PORT`: a new connection to an echo server,
   * answered when the echo object has arrived. IPv6 in brackets.
   */
  readonly url: string;
  /** Requests per second, up to 5000. Default 20. */
  readonly rate?: number;
  /** Time limit of one request from its sending. Default 500 ms. */
  readonly timeout?: Millis;
  /** Time during which requests are due; at most an hour. */
  readonly duration: Millis;
}

/** Outcome of a request. `error`: an HTTP status other than 2xx (never with `tcp://`). Only `answered` counts as served. */
export type LoadOutcome = 'answered' | 'timeout' | 'dropped' | 'refused' | 'reset' | 'empty' | 'unreachable' | 'error';

/** One request; times are wall-clock milliseconds with fractions. */
export interface LoadResult {
  /** Counts from 0. */
  readonly sequence: number;
  /** Due time, independent of earlier answers. */
  readonly scheduledAt: Millis;
  readonly sentAt: Millis;
  readonly doneAt: Millis;
  readonly outcome: LoadOutcome;
  /** Pod that answered; undefined without an answer of an echo server. */
  readonly answeredBy: string | undefined;
  readonly httpStatus: number | undefined;
}
