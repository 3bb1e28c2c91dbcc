import type { Clock, Millis } from '../../base/time.ts';

/** Number of new events at once, and the interval after which one more may follow. */
export interface EventRate {
  readonly burst: number;
  readonly refillInterval: Millis;
}

/** Rate limit of new events. Repetitions do not count. */
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

  /** Whether the budget is full, and thus equal to a new one. */
  get isFull(): boolean {
    this.#refill();
    return this.#left === this.#rate.burst;
  }

  /** Takes one event from the budget; false when it is empty. */
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
