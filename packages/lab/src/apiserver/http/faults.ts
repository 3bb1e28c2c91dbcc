import type { Millis } from '@switchyard/core';

/** What happens to a request instead of, or before, its answer. */
export type Fault =
  /** Answers with this status and body; 429 and 503 carry Retry-After when given (seconds). */
  | { readonly kind: 'status'; readonly status: number; readonly body?: string; readonly retryAfter?: number }
  /** Closes the connection without an answer. */
  | { readonly kind: 'reset' }
  /** Answers after a pause. */
  | { readonly kind: 'delay'; readonly duration: Millis }
  /** Never answers; the connection stays open. */
  | { readonly kind: 'stall' }
  /** Answers, watch events included, with a body that is slow from its first byte to its last. */
  | ({ readonly kind: 'slow' } & SlowBody);

/** How a body trickles. */
export interface SlowBody {
  /** What the server writes leaves it this much later. */
  readonly latency: Millis;
  /** Bytes that leave at once, wherever that cuts a line or a character, and the pause after them. */
  readonly bytes: number;
  readonly pause: Millis;
}

/** How often and to which requests a fault happens. Absent fields match everything. */
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

/** What of a request decides about its fault. */
export interface FaultCandidate {
  readonly method: string;
  readonly target: string;
  readonly isWatch: boolean;
  readonly authorization: string;
}

/** Hooks for tests: makes the server misbehave as real ones do. */
export interface Faults {
  /** Dispose to end the fault. */
  inject(fault: Fault, options?: FaultOptions): Disposable;
  /** Ends all open watches: `clean` with the terminating chunk, `reset` without (as a killed server). */
  endWatches(how: 'clean' | 'reset'): void;
  /** Keeps the events of all watches open now back until disposed: the streams stay open and silent. */
  holdWatches(): Disposable;
  /** Cuts all connections, and every new one at once, until disposed; with `port` only those to this port. */
  stop(port?: number): Disposable;
}

/** The list of pending faults. */
export class FaultList {
  readonly #entries = new Set<{ readonly fault: Fault; readonly options: FaultOptions; left: number }>();

  /** Adds one; dispose to remove it. */
  add(fault: Fault, options: FaultOptions): Disposable {
    const entry = { fault, options, left: options.times ?? Infinity };
    this.#entries.add(entry);
    return { [Symbol.dispose]: () => void this.#entries.delete(entry) };
  }

  /** The fault for this request, counted as used; undefined for a request that goes well. */
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
