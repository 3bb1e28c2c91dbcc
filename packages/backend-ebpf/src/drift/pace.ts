import { type Clock, type Millis, millis } from '@switchyard/core';

/** A round is spread over this time, so that a change is noticed within it. */
const roundTime = 700;
/** But no more than this share of a CPU is spent: rounds that cost more take longer. */
const maxShare = 0.02;
/** Of the first round, when nobody knows yet how many parts there are. */
const firstPause = 20;
const leastPause = 1;

/** Spreads the parts of a round evenly, by what the round before took. */
export class Pace {
  readonly #clock: Clock;
  #partBegan = 0;
  #spent = 0;
  #parts = 0;
  #pause = firstPause;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A round begins, and its first part. */
  begin(): void {
    this.#spent = 0;
    this.#parts = 0;
    this.beginPart();
  }

  beginPart(): void {
    this.#partBegan = this.#clock.monotonic();
  }

  /** A part has ended: how long to wait before the next. */
  afterPart(): Millis {
    this.#spent += this.#clock.monotonic() - this.#partBegan;
    this.#parts++;
    return millis(this.#pause);
  }

  /** A round has ended: how long to wait before the next. */
  afterRound(): Millis {
    const rest = Math.max(roundTime, this.#spent / maxShare) - this.#spent;
    const pause = rest / (this.#parts + 1);
    this.#pause = Math.max(leastPause, pause);
    return millis(this.#pause);
  }
}
