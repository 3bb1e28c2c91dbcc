import type { ServerResponse } from 'node:http';
import { type Clock, type Millis, millis } from '@switchyard/core';

/** Fault of a request, in place of its answer or before it. */
export type Fault =
  /** Answers with this status and body; 429 and 503 carry Retry-After when given (seconds). */
  | { readonly kind: 'status'; readonly status: number; readonly body?: string; readonly retryAfter?: number }
  /** Closes the connection without an answer. */
  | { readonly kind: 'reset' }
  /** Answers after a pause. */
  | { readonly kind: 'delay'; readonly duration: Millis }
  /** Never answers; the connection stays open. */
  | { readonly kind: 'stall' }
  /** Slows down the whole body, watch events included. */
  | ({ readonly kind: 'slow' } & SlowBody);

/** Pace of a slow body. */
export interface SlowBody {
  /** Delay of each write. */
  readonly latency: Millis;
  /** Bytes per piece, which may split a line or a character, and the pause after each piece. */
  readonly bytes: number;
  readonly pause: Millis;
}

/** Requests that a fault applies to, and how often. Absent fields match everything. */
export interface FaultOptions {
  readonly method?: string;
  /** Matched against path and query. */
  readonly target?: RegExp;
  readonly isWatch?: boolean;
  /** Matched against the `Authorization` header; a request without one has an empty text. */
  readonly authorization?: RegExp;
  /** Default: until disposed. */
  readonly times?: number;
}

/** Fields of a request that faults match. */
export interface FaultCandidate {
  readonly method: string;
  readonly target: string;
  readonly isWatch: boolean;
  readonly authorization: string;
}

/** Test hooks that make the server fail as real ones do. */
export interface Faults {
  /** Dispose to end the fault. */
  inject(fault: Fault, options?: FaultOptions): Disposable;
  /** Ends all open watches: `clean` with the terminating chunk, `reset` without (as a killed server). */
  endWatches(how: 'clean' | 'reset'): void;
  /** Withholds the events of all open watches until disposed; the streams stay open and silent. */
  holdWatches(): Disposable;
  /** Cuts all connections, and every new one at once, until disposed; with `port` only those to this port. */
  stop(port?: number): Disposable;
}

export class FaultList {
  readonly #entries = new Set<{ readonly fault: Fault; readonly options: FaultOptions; left: number }>();

  /** Adds one; dispose to remove it. */
  add(fault: Fault, options: FaultOptions): Disposable {
    const entry = { fault, options, left: options.times ?? Infinity };
    this.#entries.add(entry);
    return { [Symbol.dispose]: () => void this.#entries.delete(entry) };
  }

  /** Returns the fault for this request and counts it; undefined if none matches. */
  take(request: FaultCandidate): Fault | undefined {
    for (const entry of this.#entries) {
      const { method, target, isWatch, authorization } = entry.options;
      if (method !== undefined && method !== request.method) continue;
      if (target !== undefined && !target.test(request.target)) continue;
      if (isWatch !== undefined && isWatch !== request.isWatch) continue;
      if (authorization !== undefined && !authorization.test(request.authorization)) continue;
      entry.left--;
      if (entry.left <= 0) this.#entries.delete(entry);
      return entry.fault;
    }
    return undefined;
  }
}

interface Piece {
  /** Monotonic. */
  readonly due: number;
  readonly bytes: Buffer;
}

/**
 * Slows down the body of a response: from now on `write` and `end` only queue, and queued bytes leave late and in small
 * pieces. Headers go out at once. Ends with the response.
 */
export function slowDown(response: ServerResponse, how: SlowBody, clock: Clock, signal: AbortSignal): void {
  const write = response.write.bind(response) as (bytes: Buffer) => boolean;
  const end = response.end.bind(response) as () => ServerResponse;
  const queue: Piece[] = [];
  let hasEnded = false;
  let running: Promise<void> | undefined;

  const send = async (): Promise<void> => {
    for (let piece = queue.shift(); piece !== undefined; piece = queue.shift()) {
      await clock.sleep(millis(Math.max(0, piece.due - clock.monotonic())), signal);
      for (let from = 0; from < piece.bytes.length; from += how.bytes) {
        write(piece.bytes.subarray(from, from + how.bytes));
        await clock.sleep(how.pause, signal);
      }
    }
    running = undefined;
    if (hasEnded) end();
  };
  const add = (body: unknown): void => {
    if (typeof body !== 'string' && !(body instanceof Uint8Array)) return;
    queue.push({ due: clock.monotonic() + how.latency, bytes: Buffer.from(body as string) });
    running ??= send().catch(() => undefined); // rejects only after the client has disconnected
  };
  response.write = ((body: unknown) => {
    add(body);
    return true;
  }) as ServerResponse['write'];
  response.end = ((body?: unknown) => {
    add(body);
    hasEnded = true;
    if (running === undefined) end();
    return response;
  }) as ServerResponse['end'];
}
