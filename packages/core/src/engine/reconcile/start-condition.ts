import type { Logger } from '../../base/log.ts';
import { type Clock, type Millis, millis, seconds } from '../../base/time.ts';

/** A condition to wait for after in-sync and before the first apply, for a bounded time. */
export interface StartCondition {
  /** Description for the log. */
  readonly what: string;
  /** Called after each batch until it is met. Throws when it cannot be met: the reconciler ends with this error. */
  readonly isMet: () => boolean;
  readonly timeout: Millis;
  /** Error with which the reconciler ends after the time limit; absent: it continues with a warning. */
  readonly failure?: () => Error;
}

/** Interval of log lines while waiting. */
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

  /** Checks the condition unless it was met before. Call it when the result may have changed. */
  check(): void {
    if (this.#isMet || !this.#condition.isMet()) return;
    this.#isMet = true;
    this.#met.resolve();
  }

  /** Resolves when it is met or the time limit has passed; rejects with the condition's failure, or when aborted. */
  async wait(signal: AbortSignal): Promise<void> {
    const { what, timeout, failure } = this.#condition;
    const { clock, logger } = this.#host;
    const until = clock.monotonic() + timeout;
    let isFirst = true;
    while (!this.#isMet) {
      const left = Math.round(until - clock.monotonic()); // timers may fire a little early
      if (left <= 0) {
        if (failure !== undefined) throw failure();
        logger.warn('continuing without an unmet condition', { what, waitedMs: timeout });
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
    const timeout = this.#host.clock.sleep(time, stop).catch(() => undefined); // the loop checks the cause
    await Promise.race([this.#met.promise, timeout]);
    enough.abort();
    await timeout;
    signal.throwIfAborted();
  }
}
