import { type Clock, type Millis, millis } from '@switchyard/core';

/** A round is spread over this time, so that a change is noticed within it. */
const roundTime = 650;
/** But no more than this share of a CPU is spent: rounds that cost more take longer. */
const maxShare = 0.02;
/** Parts are done one after the other for so long: waking up costs as much as several of them. */
const stint = 2;
/** Of the first round, when nobody knows yet how many stints there are. */
const firstPause = 20;
const leastPause = 1;

/** Spreads the parts of a round evenly, by what the round before took. Times are in milliseconds. */
export class Pace {
  readonly #clock: Clock;
  #began = 0;
  #spent = 0;
  #stints = 0;
  #pause = firstPause;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A round begins, and its first stint. */
  begin(): void {
    this.#spent = 0;
    this.#stints = 0;
    this.beginStint();
  }

  beginStint(): void {
    this.#began = this.#clock.monotonic();
  }

  /** A part has ended: how long to wait before the next; undefined when that can follow at once. */
  afterPart(): Millis | undefined {
    const spent = this.#clock.monotonic() - this.#began;
    if (spent < stint) return undefined;
    this.#spent += spent;
    this.#stints++;
    return millis(this.#pause);
  }

  /** A round has ended: how long to wait before the next. */
  afterRound(): Millis {
    this.#spent += this.#clock.monotonic() - this.#began;
    const rest = Math.max(roundTime, this.#spent / maxShare) - this.#spent;
    this.#pause = Math.max(leastPause, rest / (this.#stints + 1));
    return millis(this.#pause);
  }
}
