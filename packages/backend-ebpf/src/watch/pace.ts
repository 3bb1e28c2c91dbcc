import { type Clock, type Millis, millis } from '@switchyard/core';

/** A round begins so long after the one before it began. Times are in milliseconds. */
const roundTime = 800;
/** But no more than this share of a CPU is spent: rounds that cost more take longer, up to a limit. */
const maxShare = 0.02;
const longestRound = 2500;
/** What so many rounds cost is known. */
const remembered = 8;
/** Parts are done one after the other for so long: waking up costs as much as several of them. */
const stint = 2;
/** Between two stints others run. Short, because what is wrong may be known at the end of the round only. */
const pause: Millis = millis(3);

/** Cuts a round into stints, and rests between rounds. */
export class Pace {
  readonly #clock: Clock;
  #roundBegan = 0;
  #stintBegan = 0;
  #spent = 0;
  /** By the last rounds. */
  readonly #recent: number[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A round begins, and its first stint. */
  begin(): void {
    this.#spent = 0;
    this.beginStint();
    this.#roundBegan = this.#stintBegan;
  }

  beginStint(): void {
    this.#stintBegan = this.#clock.monotonic();
  }

  /** A part has ended: how long to wait before the next; undefined when that can follow at once. */
  afterPart(): Millis | undefined {
    const spent = this.#clock.monotonic() - this.#stintBegan;
    if (spent < stint) return undefined;
    this.#spent += spent;
    return pause;
  }

  /** A round has ended: how long to wait before the next. */
  afterRound(): Millis {
    const now = this.#clock.monotonic();
    this.#spent += now - this.#stintBegan;
    // On a busy machine a stint takes long because others run: the cheapest of some rounds says most about what they cost.
    this.#recent.push(this.#spent);
    if (this.#recent.length > remembered) this.#recent.shift();
    const cost = Math.min(...this.#recent);
    const rest = Math.min(Math.max(roundTime, cost / maxShare), longestRound) - (now - this.#roundBegan);
    return millis(Math.max(pause, rest));
  }
}
