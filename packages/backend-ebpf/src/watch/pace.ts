import { type Clock, type Millis, millis } from '@switchyard/core';

/** Time between the beginnings of two rounds, in milliseconds. */
const roundTime = 800;
/** Maximum share of a CPU: expensive rounds begin less often, up to `longestRound`. */
const maxShare = 0.02;
const longestRound = 2500;
/** Number of rounds whose cost is remembered. */
const remembered = 8;
/** Length of a time slice in milliseconds: several parts in a row, because waking up costs as much as several of them. */
const timeSlice = 2;
/** Pause between two time slices, in which other work runs. Short, because a difference may show at the end of a round only. */
const pause: Millis = millis(3);

/** Divides a round into time slices with pauses, and sets the pause between rounds. */
export class Pace {
  readonly #clock: Clock;
  #roundBegan = 0;
  #sliceBegan = 0;
  #spent = 0;
  /** Costs of the last rounds. */
  readonly #recent: number[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A round begins, and its first time slice. */
  begin(): void {
    this.#spent = 0;
    this.beginTimeSlice();
    this.#roundBegan = this.#sliceBegan;
  }

  beginTimeSlice(): void {
    this.#sliceBegan = this.#clock.monotonic();
  }

  /** Pause after a part; undefined if the next can follow at once. */
  afterPart(): Millis | undefined {
    const spent = this.#clock.monotonic() - this.#sliceBegan;
    if (spent < timeSlice) return undefined;
    this.#spent += spent;
    return pause;
  }

  /** Pause after a round. */
  afterRound(): Millis {
    const now = this.#clock.monotonic();
    this.#spent += now - this.#sliceBegan;
    // On a busy machine a time slice takes longer because other processes run, so the cheapest of some rounds is the best estimate.
    this.#recent.push(this.#spent);
    if (this.#recent.length > remembered) this.#recent.shift();
    const cost = Math.min(...this.#recent);
    const rest = Math.min(Math.max(roundTime, cost / maxShare), longestRound) - (now - this.#roundBegan);
    return millis(Math.max(pause, rest));
  }
}
