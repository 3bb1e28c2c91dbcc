import type { Logger } from '../../base/log.ts';
import { type Clock, type Millis, millis, seconds } from '../../base/time.ts';

/** Something to wait for after in-sync and before the first apply, for a bounded time. */
export interface StartCondition {
  /** For the log. */
  readonly what: string;
  /** Asked after each batch until it is met. Throws when it can never be: then the reconciler ends with this error. */
  readonly isMet: () => boolean;
  readonly timeout: Millis;
  /** What the reconciler ends with when the time is over; absent: it goes on without, with a warning. */
  readonly failure?: () => Error;
}

/** While something is waited for, a log line says so that often. */
const progressInterval: Millis = seconds(30);

/** The wait for one condition. */
export class StartWait {
  readonly #condition: StartCondition;
  readonly #host: { readonly clock: Clock; readonly logger: Logger };
  readonly #met = Promise.withResolvers<void>();
  #isMet = false;

  constructor(condition: StartCondition, host: { readonly clock: Clock; readonly logger: Logger }) {
    this.#condition = condition;
    this.#host = host;
  }

  /** Asks, unless it was met before. To be called whenever the answer may have changed. */
  check(): void {
    if (this.#isMet || !this.#condition.isMet()) return;
    this.#isMet = true;
    this.#met.resolve();
  }

  /** Resolves when it is met or the time is over; rejects with the condition's failure, or when aborted. */
  async wait(signal: AbortSignal): Promise<void> {
    const { what, timeout, failure } = this.#condition;
    const { clock, logger } = this.#host;
    const until = clock.monotonic() + timeout;
    let isFirst = true;
    while (!this.#isMet) {
      const left = Math.round(until - clock.monotonic()); // timers may come a little early
      if (left <= 0) {
        if (failure !== undefined) throw failure();
        logger.warn('went on without what was waited for', { what, waitedMs: timeout });
        return;
      }
      if (isFirst) logger.info('waiting', { what, timeoutMs: timeout });
      else logger.info('still waiting', { what, waitedMs: timeout - left, timeoutMs: timeout });
      isFirst = false;
      await this.#metWithin(millis(Math.min(left, progressInterval)), signal);
    }
  }

  async #metWithin(time: Millis, signal: AbortSignal): Promise<void> {
    const enough = new AbortController();
    const stop = AbortSignal.any([signal, enough.signal]);
    const timeout = this.#host.clock.sleep(time, stop).catch(() => undefined); // the loop looks at what it was
    await Promise.race([this.#met.promise, timeout]);
    enough.abort();
    await timeout;
    signal.throwIfAborted();
  }
}
