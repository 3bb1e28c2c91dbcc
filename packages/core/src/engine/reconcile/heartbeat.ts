import { sleepUnlessAborted } from '../../base/abortable.ts';
import { HostError } from '../../base/errors.ts';
import { type Millis, seconds } from '../../base/time.ts';
import type { FamilyHost, FamilyStatus } from './family-log.ts';

interface Freshness {
  readonly status: () => FamilyStatus;
  /** Returns the time since the source last received data. */
  readonly sourceSilence: () => Millis;
}

/** Interval of marks, and thus the largest error of the age that is read from the kernel. */
export const heartbeatInterval: Millis = seconds(20);

/**
 * Longest silence of a source in contact. Bookmarks arrive about every minute, and a watch without data for 130 s is closed.
 */
export const maxSourceSilence: Millis = seconds(150);

/**
 * Renews a mark in the kernel while the rules are reconciled, so that a later process can read their age; and logs the age
 * at the start of this process. Writes no mark before the first apply, while the last one failed, while a change waits
 * longer than the interval, or while the source is out of contact.
 */
export class Heartbeat {
  readonly #host: FamilyHost;
  readonly #freshness: Freshness;
  readonly #firstApply = Promise.withResolvers<void>();
  #isFailing = false;

  constructor(host: FamilyHost, freshness: Freshness) {
    this.#host = host;
    this.#freshness = freshness;
  }

  /** Notes a successful apply. The first one is marked at once. */
  noteApplied(): void {
    this.#firstApply.resolve();
  }

  /** Logs the age of the rules. Reads only; call it before the first apply, which may replace the mark. */
  async logAge(signal: AbortSignal): Promise<void> {
    const { backend, logger, metrics } = this.#host;
    const { ipFamily } = backend;
    try {
      const age = await backend.observers.age?.read(signal);
      if (age === undefined) return;
      const forSeconds = Math.round(age / 100) / 10;
      metrics.set('switchyard_unreconciled_seconds', { ip_family: ipFamily }, forSeconds);
      logger.info('rules were not reconciled for some time', { ipFamily, forSeconds });
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof HostError)) throw error;
      logger.warn('cannot read the age of the rules from the kernel', { ipFamily, error });
    }
  }

  /** Writes marks until aborted; resolves at once for a backend that cannot. */
  async run(signal: AbortSignal): Promise<void> {
    const { backend, clock } = this.#host;
    if (backend.observers.age === undefined) return;
    signal.addEventListener('abort', () => this.#firstApply.resolve(), { once: true });
    if (signal.aborted) return;
    await this.#firstApply.promise;
    while (!signal.aborted) {
      const { lastApplied, failure, pendingFor = 0 } = this.#freshness.status();
      const isApplied = lastApplied !== undefined && failure === undefined && pendingFor < heartbeatInterval;
      if (isApplied && this.#freshness.sourceSilence() < maxSourceSilence) await this.#mark(signal);
      await sleepUnlessAborted(clock, heartbeatInterval, signal);
    }
  }

  async #mark(signal: AbortSignal): Promise<void> {
    const { backend, logger } = this.#host;
    const { ipFamily } = backend;
    try {
      await backend.observers.age?.mark(signal);
      if (this.#isFailing) logger.info('the age of the rules is kept in the kernel again', { ipFamily });
      this.#isFailing = false;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof HostError)) throw error;
      const message = 'cannot keep the age of the rules in the kernel, will retry';
      logger[this.#isFailing ? 'debug' : 'warn'](message, { ipFamily, error });
      this.#isFailing = true;
    }
  }
}
