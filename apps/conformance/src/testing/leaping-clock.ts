import { type Clock, type Millis, millis } from '@switchyard/core';

interface Sleeper {
  readonly due: number;
  readonly wake: () => void;
}

/** A clock that leaps to the end of the shortest sleep as soon as nobody has anything else to do. */
export class LeapingClock implements Clock {
  #time = 1000;
  readonly #sleepers = new Set<Sleeper>();
  #isLeaping = false;

  now(): Millis {
    return millis(this.#time);
  }

  monotonic(): Millis {
    return millis(this.#time);
  }

  sleep(duration: Millis, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const onAbort = (): void => {
        this.#sleepers.delete(sleeper);
        reject(signal.reason);
      };
      const wake = (): void => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      const sleeper = { due: this.#time + Math.max(0, duration), wake };
      this.#sleepers.add(sleeper);
      signal.addEventListener('abort', onAbort, { once: true });
      this.#leapWhenIdle();
    });
  }

  #leapWhenIdle(): void {
    if (this.#isLeaping || this.#sleepers.size === 0) return;
    this.#isLeaping = true;
    setImmediate(() => {
      this.#isLeaping = false;
      const [next] = [...this.#sleepers].toSorted((a, b) => a.due - b.due);
      if (next !== undefined) {
        this.#sleepers.delete(next);
        this.#time = Math.max(this.#time, next.due);
        next.wake();
      }
      this.#leapWhenIdle();
    });
  }
}
