import type { Clock, Millis } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';

/** A clock that moves to the end of the shortest sleep as soon as the program has nothing else to do. */
export class LeapingClock implements Clock {
  readonly #clock = new ManualClock(1000);
  #isLeaping = false;

  now(): Millis {
    return this.#clock.now();
  }

  monotonic(): Millis {
    return this.#clock.monotonic();
  }

  sleep(duration: Millis, signal: AbortSignal): Promise<void> {
    const sleep = this.#clock.sleep(duration, signal);
    void this.#leap();
    return sleep;
  }

  async #leap(): Promise<void> {
    if (this.#isLeaping) return;
    this.#isLeaping = true;
    while (this.#clock.sleeping > 0) await this.#clock.advanceToNext();
    this.#isLeaping = false;
  }
}
