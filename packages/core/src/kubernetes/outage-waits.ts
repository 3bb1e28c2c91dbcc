import { type Clock, type Millis, seconds } from '../base/time.ts';

/** Minimum interval between two ends, so that reflectors that reconnect briefly do not wake each other in a loop. */
const minGap = seconds(10);

/**
 * Back-off waits of the reflectors of one API server, up to half a minute each. The first reflector that connects again ends
 * the waits of the others.
 */
export class OutageWaits {
  readonly #clock: Clock;
  readonly #waiting = new Set<AbortController>();
  #endedAt: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sleeps until `end` at the latest. Rejects with `signal.reason` when aborted first. */
  async sleep(duration: Millis, signal: AbortSignal): Promise<void> {
    const early = new AbortController();
    this.#waiting.add(early);
    try {
      await this.#clock.sleep(duration, AbortSignal.any([signal, early.signal]));
    } catch (error) {
      if (!early.signal.aborted || signal.aborted) throw error;
    } finally {
      this.#waiting.delete(early);
    }
  }

  /** Ends all present waits, at most once in ten seconds. Call it when the API server answers again. */
  end(): void {
    const now = this.#clock.monotonic();
    if (this.#endedAt !== undefined && now - this.#endedAt < minGap) return;
    this.#endedAt = now;
    for (const early of this.#waiting) early.abort();
  }
}
