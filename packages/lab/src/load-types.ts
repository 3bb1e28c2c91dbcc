import type { Millis } from '@switchyard/core';

/** Open-loop load: request n is due at start + n / rate, however slow the answers are. */
export interface LoadOptions {
  /**
   * `http://`: an address to GET; a new connection for each request. `tcp://HOST:PORT`: a new connection to an echo server,
   * answered when it has said who it is. IPv6 in brackets.
   */
  readonly url: string;
  /** Requests per second, up to 5000. Default 20. */
  readonly rate?: number;
  /** For one request in all, counted from its sending. Default 500 ms. */
  readonly timeout?: Millis;
  /** For how long requests are due, up to an hour. */
  readonly duration: Millis;
}

/** How a request ended. `error`: an HTTP status other than 2xx (never with `tcp://`). Only `answered` counts as served. */
export type LoadOutcome = 'answered' | 'timeout' | 'dropped' | 'refused' | 'reset' | 'empty' | 'unreachable' | 'error';

/** One request; times are wall-clock milliseconds with fractions. */
export interface LoadResult {
  /** Counts from 0. */
  readonly sequence: number;
  /** When the open loop wanted it sent: independent of earlier answers. */
  readonly scheduledAt: Millis;
  readonly sentAt: Millis;
  readonly doneAt: Millis;
  readonly outcome: LoadOutcome;
  /** The pod that answered; undefined when nobody did, or somebody who is no echo server. */
  readonly answeredBy: string | undefined;
  readonly httpStatus: number | undefined;
}
