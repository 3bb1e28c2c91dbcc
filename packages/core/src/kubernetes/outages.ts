import type { Logger } from '../base/log.ts';
import { type Clock, type Millis, seconds } from '../base/time.ts';
import type { ApiFailure } from './api-failure.ts';

/** Logs the first failure of an outage, and its end. */
export class OutageLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #resource: string;
  #lostAt: number | undefined;
  #failures = 0;

  constructor(log: Logger, clock: Clock, resource: string) {
    this.#log = log;
    this.#clock = clock;
    this.#resource = resource;
  }

  /** Notes a failed attempt. Failures after the first are logged at debug level. */
  lost(failure: ApiFailure): void {
    this.#failures++;
    const fields = { resource: this.#resource, error: failure.message, status: failure.status };
    if (this.#lostAt !== undefined) return this.#log.debug('still no connection to the API server', fields);
    this.#lostAt = this.#clock.monotonic();
    this.#log.warn('lost the API server; forwarding stays as it is', fields);
  }

  /** Notes that a list or a watch works. Returns whether that ends an outage. */
  recovered(): boolean {
    if (this.#lostAt === undefined) return false;
    const duration = this.#clock.monotonic() - this.#lostAt;
    this.#log.info('the API server is back', { resource: this.#resource, duration, failures: this.#failures });
    this.#lostAt = undefined;
    this.#failures = 0;
    return true;
  }
}

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
