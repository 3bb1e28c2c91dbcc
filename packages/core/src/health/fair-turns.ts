/** Place of a client: this node (loopback or one of its own addresses), or elsewhere. */
export type ClientPlace = 'node' | 'elsewhere';

/** Runs `callback` after the event loop has served everything else once. */
export type NextTurn = (callback: () => void) => void;

/**
 * Shares the event loop between connections: each turn of the loop does one piece of work, in order of arrival.
 * Clients on this node and clients elsewhere take turns, so that one place cannot delay the other.
 */
export class FairTurns {
  readonly #nextTurn: NextTurn;
  readonly #waiting: Readonly<Record<ClientPlace, (() => void)[]>> = { node: [], elsewhere: [] };
  #last: ClientPlace = 'elsewhere';
  #isScheduled = false;

  constructor(nextTurn: NextTurn = setImmediate) {
    this.#nextTurn = nextTurn;
  }

  /** Calls `work` in a later turn. `work` must not throw. */
  add(place: ClientPlace, work: () => void): void {
    this.#waiting[place].push(work);
    this.#schedule();
  }

  /** Resolves in a later turn. */
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
