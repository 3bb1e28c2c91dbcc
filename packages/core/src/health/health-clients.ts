import type { Millis } from '../base/time.ts';

/** A client of a health check: mostly a load balancer. */
export interface HealthClient {
  readonly address: string;
  /** Answers in a row, up to the last one, that were no 200. */
  readonly failures: number;
}

interface Known {
  failures: number;
  last: number;
  /** Between its last two checks. */
  interval: number;
}

/** Beyond these, the one that has been silent for longest is forgotten. */
const maxClients = 100;
/** A client that missed three checks checks no more. Limits in milliseconds: for quick ones, and for those that checked once. */
const silence = { factor: 3, least: 15_000, first: 120_000 };

/** Clients that check the health of one Service on this node. */
export class HealthClients {
  readonly #known = new Map<string, Known>();

  /** Notes an answer at a time of CLOCK_MONOTONIC. */
  note(address: string, isHealthy: boolean, now: Millis): void {
    const before = this.#known.get(address);
    this.#known.delete(address); // the Map is in order of the last check
    const interval = before === undefined ? silence.first / silence.factor : now - before.last;
    this.#known.set(address, { failures: isHealthy ? 0 : (before?.failures ?? 0) + 1, last: now, interval });
    const [oldest] = this.#known.keys();
    if (this.#known.size > maxClients && oldest !== undefined) this.#known.delete(oldest);
  }

  /** Those that still check. */
  current(now: Millis): readonly HealthClient[] {
    return [...this.#known]
      .filter(([, { last, interval }]) => now - last <= Math.max(silence.least, silence.factor * interval))
      .map(([address, { failures }]) => ({ address, failures }));
  }
}
