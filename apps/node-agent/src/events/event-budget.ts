import type { Clock } from '@switchyard/core';

/** New events at once, and how long it takes until one more may come. */
const burst = 25;
const refillInterval = 10_000;

/** How many new events may be told of. Repetitions cost nothing. */
export class EventBudget {
  readonly #clock: Clock;
  #left = burst;
  #countedAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#countedAt = clock.monotonic();
  }

  /** Takes one; false when there is none. */
  take(): boolean {
    const refilled = Math.floor((this.#clock.monotonic() - this.#countedAt) / refillInterval);
    if (refilled > 0) {
      this.#left = Math.min(burst, this.#left + refilled);
      this.#countedAt += refilled * refillInterval;
    }
    if (this.#left === 0) return false;
    this.#left--;
    return true;
  }
}
