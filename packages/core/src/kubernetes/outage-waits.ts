import { type Clock, type Millis, seconds } from '../base/time.ts';

/** Reflectors that get through for a moment, again and again, must not wake each other in a circle. */
const minGap = seconds(10);

/**
 * The waits of reflectors that lost the same API server. Each backs off on its own, up to half a minute; as soon as
 * one of them gets through, the others need not wait any longer.
 */
export class OutageWaits {
  readonly #clock: Clock;
  readonly #waiting = new Set<AbortController>();
  #endedAt: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sleeps, but not past `end`. Rejects with `signal.reason` when aborted first. */
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

  /** The API server answers again: ends all present waits, at most once in ten seconds. */
  end(): void {
    const now = this.#clock.monotonic();
    if (this.#endedAt !== undefined && now - this.#endedAt < minGap) return;
    this.#endedAt = now;
    for (const early of this.#waiting) early.abort();
  }
}
