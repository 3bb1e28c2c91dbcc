import { type Clock, type Millis, millis, UsageError } from '@switchyard/core';

/** A clock that a test moves at once, for code that does not wait. Both of its times start at 0. */
export class StepClock implements Clock {
  #time = 0;

  now(): Millis {
    return millis(this.#time);
  }

  monotonic(): Millis {
    return millis(this.#time);
  }

  async sleep(): Promise<void> {
    throw new UsageError('clock.sleep', 'a step clock cannot be waited for; use ManualClock');
  }

  step(by: number): void {
    this.#time += by;
  }
}
