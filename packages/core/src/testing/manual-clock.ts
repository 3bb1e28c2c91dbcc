import { UsageError } from '../errors.ts';
import { type Clock, type Millis, millis } from '../time.ts';

interface Sleeper {
  readonly due: number;
  readonly wake: () => void;
}

/**
 * A clock that moves only when told to. Wall clock and monotonic clock advance together; `jump` moves
 * the wall clock alone, as an operator or NTP does.
 */
export class ManualClock implements Clock {
  #elapsed = 0;
  #origin: number;
  #sleepers: readonly Sleeper[] = [];

  /** `start` is the wall clock's first reading; the monotonic clock starts at 0. */
  constructor(start: Millis = millis(Date.UTC(2026, 0, 1))) {
    this.#origin = start;
  }

  now(): Millis {
    return millis(this.#origin + this.#elapsed);
  }

  monotonic(): Millis {
    return millis(this.#elapsed);
  }

  /** How many `sleep` calls wait. */
  get sleeping(): number {
    return this.#sleepers.length;
  }

  sleep(duration: Millis, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const leave = (): void => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        signal.removeEventListener('abort', onAbort);
      };
      const onAbort = (): void => {
        leave();
        reject(signal.reason);
      };
      const wake = (): void => {
        leave();
        resolve();
      };
      const sleeper: Sleeper = { due: this.#elapsed + Math.max(0, duration), wake };
      this.#sleepers = [...this.#sleepers, sleeper];
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  /**
   * Moves time forward, waking sleepers in the order in which they are due. Between two of them, code
   * that was woken gets to run and may sleep again inside the same span.
   */
  async advance(duration: Millis): Promise<void> {
    if (duration < 0) throw new UsageError('clock.backwards', `time cannot move by ${duration} ms; use jump()`);
    const end = this.#elapsed + duration;
    await settle();
    for (;;) {
      const next = this.#sleepers.filter((sleeper) => sleeper.due <= end).sort((a, b) => a.due - b.due)[0];
      if (next === undefined) break;
      this.#elapsed = Math.max(this.#elapsed, next.due);
      next.wake();
      await settle();
    }
    this.#elapsed = end;
  }

  /** Moves the wall clock alone, forwards or backwards; nobody wakes. */
  jump(by: Millis): void {
    this.#origin += by;
  }
}

/** Lets promise chains that are ready to run, run; a macrotask comes after all of them. */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
