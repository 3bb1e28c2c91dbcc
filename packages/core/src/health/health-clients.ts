import { type Millis, seconds } from '../base/time.ts';

/** Word of a load balancer about a node: new connections may go there, or they never do. */
export type Announcement = 'uses' | 'left';

/** A client of a health check: mostly a load balancer. */
export interface HealthClient {
  readonly address: string;
  /** Answers in a row, up to the last one, that were no 200. */
  readonly failures: number;
  /** Undefined: the client does not say whether it uses this node. */
  readonly announced?: Announcement;
}

/** One request for a node's health and its answer. */
export interface HealthAnswer {
  readonly isHealthy: boolean;
  /** In the request. */
  readonly announced: Announcement | undefined;
}

interface Known {
  failures: number;
  last: number;
  /** Between its last two checks. */
  interval: number;
  word: { readonly announced: Announcement; readonly at: number } | undefined;
}

/** Header of a health check with an `Announcement`, in lower case. */
const announcementHeader = 'switchyard-load-balancer';
/** Beyond these, the one that has been silent for longest is forgotten. */
const maxClients = 100;
/** A client that missed three checks checks no more. Limits in milliseconds: for quick ones, and for those that checked once. */
const silence = { factor: 3, least: 15_000, first: 120_000 };
/** An announcement counts for this long. Clients repeat theirs every 5 s. */
const wordTime: Millis = seconds(15);

/** Reads what a request says in `Switchyard-Load-Balancer`; undefined for any other value. */
export function announcementOf(headers: Readonly<Record<string, string | undefined>>): Announcement | undefined {
  const text = headers[announcementHeader];
  return text === 'uses' || text === 'left' ? text : undefined;
}

/** Clients that check the health of one Service on this node. */
export class HealthClients {
  readonly #known = new Map<string, Known>();

  /**
   * Notes an answer at a time of CLOCK_MONOTONIC. `left` counts only if the answer was not healthy: the client may not know
   * yet that this node has endpoints again, or may know before this node that it has none.
   */
  note(address: string, { isHealthy, announced }: HealthAnswer, now: Millis): void {
    const before = this.#known.get(address);
    this.#known.delete(address); // the Map is in order of the last check
    const interval = before === undefined ? silence.first / silence.factor : now - before.last;
    const said = announced === undefined ? before?.word : { announced, at: now };
    const word = said !== undefined && isHealthy ? ({ ...said, announced: 'uses' } as const) : said;
    this.#known.set(address, { failures: isHealthy ? 0 : (before?.failures ?? 0) + 1, last: now, interval, word });
    const [oldest] = this.#known.keys();
    if (this.#known.size > maxClients && oldest !== undefined) this.#known.delete(oldest);
  }

  /** Those that still check. */
  current(now: Millis): readonly HealthClient[] {
    return [...this.#known]
      .filter(([, { last, interval }]) => now - last <= Math.max(silence.least, silence.factor * interval))
      .map(([address, { failures, word }]) => ({
        address,
        failures,
        ...(word !== undefined && now - word.at <= wordTime ? { announced: word.announced } : {}),
      }));
  }
}
