import { type Clock, type Millis, millis } from '../base/time.ts';

/** Place of a client: this node (loopback or one of its own addresses), or elsewhere. */
export type ClientPlace = 'node' | 'elsewhere';

/**
 * Shares the event loop between connections: each turn of the loop does one piece of work, in order of arrival.
 * Clients on this node and clients elsewhere take turns, so that one place cannot delay the other.
 */
export class FairTurns {
  /** Runs `callback` after the event loop has served everything else once. */
  readonly #nextTurn: (callback: () => void) => void;
  readonly #waiting: Readonly<Record<ClientPlace, (() => void)[]>> = { node: [], elsewhere: [] };
  #last: ClientPlace = 'elsewhere';
  #isScheduled = false;

  constructor(nextTurn: (callback: () => void) => void = setImmediate) {
    this.#nextTurn = nextTurn;
  }

  /** Calls `work` in a later turn. `work` must not throw. */
  add(place: ClientPlace, work: () => void): void {
    this.#waiting[place].push(work);
    this.#schedule();
  }

  next(place: ClientPlace): Promise<void> {
    return new Promise((resolve) => this.add(place, resolve));
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#nextTurn(() => {
      this.#isScheduled = false;
      const work = this.#take();
      if (this.#waiting.node.length + this.#waiting.elsewhere.length > 0) this.#schedule();
      work?.();
    });
  }

  #take(): (() => void) | undefined {
    const other = this.#last === 'node' ? 'elsewhere' : 'node';
    this.#last = this.#waiting[other].length > 0 ? other : this.#last;
    return this.#waiting[this.#last].shift();
  }
}

/** A connection of a pool. */
export interface PooledConnection {
  cut(): void;
}

interface PoolLimits {
  readonly connections: number;
  /** Time limit for starting a request, and for sending it from its first byte. */
  readonly requestTime: Millis;
}

/**
 * Open connections of one socket from one place. A new connection is never refused: at the limit the pool closes the one
 * that has waited longest for its client. It also closes connections without a complete request in time.
 */
export class ConnectionPool {
  readonly #limits: PoolLimits;
  readonly #clock: Clock;
  readonly #members = new Set<PooledConnection>();
  /** Start of the wait for a request, by connection; oldest first. */
  readonly #expecting = new Map<PooledConnection, Millis>();
  /** Start of the wait for the client to read an answer, by connection; oldest first. */
  readonly #sending = new Map<PooledConnection, Millis>();
  /** Ends the wait for the next deadline; undefined while there is none. */
  #sleep: AbortController | undefined;

  constructor(limits: PoolLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  get size(): number {
    return this.#members.size;
  }

  /** Adds a new connection and starts the time limit of its first request. */
  add(connection: PooledConnection): void {
    if (this.#members.size >= this.#limits.connections) this.#evict();
    this.#members.add(connection);
    this.expectRequest(connection);
  }

  /** Starts the time limit of the next request. */
  expectRequest(connection: PooledConnection): void {
    if (!this.#members.has(connection)) return;
    this.#forget(connection);
    this.#expecting.set(connection, this.#clock.monotonic());
    this.#watch();
  }

  /** Notes a complete request: this process must answer now. */
  beginAnswer(connection: PooledConnection): void {
    this.#forget(connection);
  }

  /** Notes that the client must read an answer now. */
  expectReading(connection: PooledConnection): void {
    if (!this.#members.has(connection)) return;
    this.#forget(connection);
    this.#sending.set(connection, this.#clock.monotonic());
  }

  remove(connection: PooledConnection): void {
    this.#forget(connection);
    this.#members.delete(connection);
    if (this.#expecting.size === 0) this.#sleep?.abort();
  }

  cutAll(): void {
    for (const connection of this.#members) this.#cut(connection);
  }

  #forget(connection: PooledConnection): void {
    this.#expecting.delete(connection);
    this.#sending.delete(connection);
  }

  #cut(connection: PooledConnection): void {
    this.remove(connection);
    connection.cut();
  }

  #evict(): void {
    const [expecting] = this.#expecting;
    const [sending] = this.#sending;
    const [anyone] = this.#members;
    const isOlder = expecting !== undefined && (sending === undefined || expecting[1] <= sending[1]);
    const victim = isOlder ? expecting[0] : (sending?.[0] ?? anyone);
    if (victim !== undefined) this.#cut(victim);
  }

  /** Deadlines are in the order of `#expecting`, so that one sleep at a time is enough. */
  #watch(): void {
    const [oldest] = this.#expecting;
    if (this.#sleep !== undefined || oldest === undefined) return;
    const sleep = new AbortController();
    this.#sleep = sleep;
    const due = oldest[1] + this.#limits.requestTime;
    const wait = millis(Math.max(0, due - this.#clock.monotonic()));
    void this.#clock
      .sleep(wait, sleep.signal)
      .catch(() => undefined) // nothing to wait for, or not any more
      .then(() => {
        this.#sleep = undefined;
        const begun = this.#clock.monotonic() - this.#limits.requestTime;
        for (const [connection, since] of this.#expecting) if (since <= begun) this.#cut(connection);
        this.#watch();
      });
  }
}
