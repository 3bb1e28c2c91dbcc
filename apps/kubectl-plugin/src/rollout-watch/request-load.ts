import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type Clock, millis, type Millis } from '@switchyard/core';
import type { RequestOutcome, RequestResult } from './recording.ts';

/**
 * Time limit of one request. Below a second: the kernel sends a lost first packet again after a second, which would hide the loss.
 */
export const requestTimeout: Millis = millis(900);

/** Target and schedule of an open loop: request n is due at start + n / rate, however slow the answers are. */
export interface LoadOptions {
  /** `http:` or `https:`. */
  readonly url: URL;
  /** Requests a second. */
  readonly rate: number;
  readonly clock: Clock;
}

/** Sends GET requests, each over a new connection, until `signal` aborts. Resolves with all results when the last one is done. */
export async function runLoad(options: LoadOptions, signal: AbortSignal): Promise<readonly RequestResult[]> {
  const { clock, rate } = options;
  const start = clock.monotonic();
  const results: Promise<RequestResult>[] = [];
  while (!signal.aborted) {
    const due = start + (results.length * 1000) / rate;
    const wait = due - clock.monotonic();
    if (wait <= 0) results.push(sendRequest(options));
    else await clock.sleep(millis(wait), signal).catch(() => undefined); // aborted
  }
  return Promise.all(results);
}

async function sendRequest({ url, clock }: LoadOptions): Promise<RequestResult> {
  const sentAt = clock.now();
  const { promise, resolve } = Promise.withResolvers<RequestOutcome>();
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const attempt = send(url, { agent: false, headers: { connection: 'close' } }, (response) => {
    const status = response.statusCode ?? 0;
    response.on('error', (error) => resolve(outcomeOf(error)));
    response.on('end', () => resolve(status >= 200 && status < 300 ? 'answered' : 'error'));
    response.resume();
  });
  let isConnected = false;
  attempt.on('socket', (socket) => socket.once('connect', () => (isConnected = true)));
  attempt.on('error', (error) => resolve(outcomeOf(error)));
  attempt.end();
  const done = new AbortController();
  const limit = clock.sleep(requestTimeout, done.signal).then(
    // An answer that arrived while this process was busy is read first.
    () => clock.sleep(millis(1), done.signal).then(() => resolve(isConnected ? 'unanswered' : 'timeout')),
  );
  limit.catch(() => undefined); // stopped by the outcome
  const outcome = await promise;
  done.abort();
  attempt.destroy();
  return { sentAt, doneAt: clock.now(), outcome };
}

/** Exported for tests. */
export function outcomeOf(error: NodeJS.ErrnoException): RequestOutcome {
  switch (error.code) {
    case 'ECONNREFUSED':
      return 'refused';
    case 'EPERM':
      return 'dropped';
    case 'ETIMEDOUT':
      return 'timeout';
    case 'ECONNRESET':
      return error.message === 'socket hang up' ? 'empty' : 'reset';
    case 'EPIPE':
      return 'reset';
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return 'unreachable';
    default:
      return 'failed';
  }
}
