import { type Millis, seconds, type Clock } from '../../base/time.ts';

/** Rate limits of a recorder, and its definition of a repetition. */
export interface EventPolicy {
  /** Whether events with different notes are different events. */
  readonly notes: 'ignored' | 'distinct';
  readonly rate: EventRate;
  /** Whether all events share one budget, or each subject has its own. */
  readonly budgetPer: 'recorder' | 'subject';
  /** Limit of remembered series; each may wait for the API server. */
  readonly maxSeries: number;
  /** Time without a repetition after which a series ends; the next event starts a new one. */
  readonly seriesEnd: Millis;
}

/** Policy of a program on every node: few events, so that a large cluster does not flood the API server. Series as in kube-proxy. */
export const agentEventPolicy: EventPolicy = {
  notes: 'ignored',
  rate: { burst: 25, refillInterval: seconds(10) },
  budgetPer: 'recorder',
  maxSeries: 200,
  seriesEnd: seconds(360),
};

/** Policy of one program with events about many objects. As in client-go's recorder: 25 per object, one more every 5 minutes. */
export const controllerEventPolicy: EventPolicy = {
  notes: 'distinct',
  rate: { burst: 25, refillInterval: seconds(300) },
  budgetPer: 'subject',
  maxSeries: 4096,
  seriesEnd: seconds(600),
};

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
