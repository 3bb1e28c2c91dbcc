import { setImmediate } from 'node:timers/promises';
import { UsageError } from '../base/errors.ts';
import { type Clock, type Millis, millis } from '../base/time.ts';

interface Sleeper {
  readonly due: number;
  readonly wake: () => void;
}

/** A clock that stands still until a test moves it. Both of its times start at `start` (default 0). */
export class ManualClock implements Clock {
  #time: number;
  #wallOffset = 0;
  #sleepers: Sleeper[] = [];

  constructor(start = 0) {
    this.#time = start;
  }

  now(): Millis {
    return millis(this.#time + this.#wallOffset);
  }

  monotonic(): Millis {
    return millis(this.#time);
  }

  sleep(duration: Millis, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const onAbort = (): void => {
        this.#sleepers = this.#sleepers.filter((one) => one !== sleeper);
        reject(signal.reason);
      };
      const wake = (): void => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      const sleeper = { due: this.#time + Math.max(0, duration), wake };
      this.#sleepers.push(sleeper);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** How many sleeps are pending: zero when nothing waits for time. */
  get sleeping(): number {
    return this.#sleepers.length;
  }

  /**
   * Moves time on by `duration`, waking sleepers in order of their due time and letting each finish
   * what it can before the next. Time stands at the sleeper's due time while it runs.
   */
  async advance(duration: Millis | number): Promise<void> {
    if (duration < 0) throw new UsageError('clock.backwards', `time cannot move by ${duration} ms; use jump()`);
    const end = this.#time + duration;
    await settle();
    while (this.#wakeNext(end)) await settle();
    this.#time = end;
  }

  /** Moves time on to the end of the shortest sleep, once nothing else is ready to run. */
  async advanceToNext(): Promise<void> {
    await settle();
    this.#wakeNext(Infinity);
  }

  #wakeNext(end: number): boolean {
    const next = this.#sleepers.filter((one) => one.due <= end).sort((a, b) => a.due - b.due)[0];
    if (next === undefined) return false;
    this.#sleepers = this.#sleepers.filter((one) => one !== next);
    this.#time = Math.max(this.#time, next.due);
    next.wake();
    return true;
  }

  /** Moves the wall clock alone, forwards or backwards, as an operator or NTP does; ends no sleep. */
  jump(by: Millis | number): void {
    this.#wallOffset += by;
  }
}

/** Lets everything that is ready run, until only time or the outside world can move anything. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 3; round++) await setImmediate();
}
