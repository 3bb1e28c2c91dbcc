import type { Clock, Millis } from '../../base/time.ts';

/** New events at once, and how long it takes until one more may come. */
export interface EventRate {
  readonly burst: number;
  readonly refillInterval: Millis;
}

/** How many new events may be told of. Repetitions cost nothing. */
export class EventBudget {
  readonly #clock: Clock;
  readonly #rate: EventRate;
  #left: number;
  #countedAt: number;

  constructor(clock: Clock, rate: EventRate) {
    this.#clock = clock;
    this.#rate = rate;
    this.#left = rate.burst;
    this.#countedAt = clock.monotonic();
  }

  /** Nothing has been taken for so long that a new budget would be the same. */
  get isFull(): boolean {
    this.#refill();
    return this.#left === this.#rate.burst;
  }

  /** Takes one; false when there is none. */
  take(): boolean {
    this.#refill();
    if (this.#left === 0) return false;
    this.#left--;
    return true;
  }

  #refill(): void {
    const { burst, refillInterval } = this.#rate;
    const refilled = Math.floor((this.#clock.monotonic() - this.#countedAt) / refillInterval);
    if (refilled <= 0) return;
    this.#left = Math.min(burst, this.#left + refilled);
    this.#countedAt += refilled * refillInterval;
  }
}
