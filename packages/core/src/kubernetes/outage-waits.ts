import type { Clock, Millis } from '../time.ts';

/**
 * The waits of reflectors that lost the same API server. Each backs off on its own, up to half a minute; as soon as
 * one of them gets through, the others need not wait any longer.
 */
export class OutageWaits {
  readonly #waiting = new Set<AbortController>();

  /** Sleeps, but not past `end`. Rejects with `signal.reason` when aborted first. */
  async sleep(duration: Millis, clock: Clock, signal: AbortSignal): Promise<void> {
    const early = new AbortController();
    this.#waiting.add(early);
    try {
      await clock.sleep(duration, AbortSignal.any([signal, early.signal]));
    } catch (error) {
      if (!early.signal.aborted || signal.aborted) throw error;
    } finally {
      this.#waiting.delete(early);
    }
  }

  /** The API server answers again: ends all present waits. */
  end(): void {
    for (const early of this.#waiting) early.abort();
  }
}
