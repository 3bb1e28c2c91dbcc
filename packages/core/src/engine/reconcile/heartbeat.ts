import { HostError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import { type Clock, type Millis, seconds } from '../../base/time.ts';
import type { DataplaneBackend } from '../dataplane-backend.ts';
import type { FamilyStatus } from './reconcile-status.ts';

/** Whose kernel objects are marked, and who knows whether they are right. */
export interface HeartbeatOptions {
  readonly backend: DataplaneBackend;
  readonly status: () => FamilyStatus;
  /** Time since the source last heard of the cluster. */
  readonly sourceSilence: () => Millis;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** How often the kernel is told that its rules are right: how much the age that is read there may be too high. */
export const heartbeatInterval: Millis = seconds(10);

/**
 * A source that heard nothing for this long is out of contact: bookmarks come about every minute, and a watch without a byte for
 * 130 s is given up.
 */
export const maxSourceSilence: Millis = seconds(150);

/**
 * Keeps a mark in the kernel that grows old when nobody reconciles, so that the age of the rules can be read when this
 * process is gone; and says how old it was when this process came. Nothing is marked before the first apply, while
 * the last one failed, while a change waits longer than the interval, or while the source is out of contact.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #firstApply = Promise.withResolvers<void>();
  #isFailing = false;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  /** An apply succeeded. The first one is marked at once. */
  noteApplied(): void {
    this.#firstApply.resolve();
  }

  /** Logs for how long nobody reconciled. Reads only; call it before the first apply, which may replace what is read. */
  async tellAge(signal: AbortSignal): Promise<void> {
    const { backend, logger, metrics } = this.#options;
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
      logger.warn('cannot tell for how long the rules were not reconciled', { ipFamily, error });
    }
  }

  /** Marks until aborted; resolves at once for a backend that cannot. */
  async run(signal: AbortSignal): Promise<void> {
    const { backend, clock } = this.#options;
    if (backend.observers.age === undefined) return;
    signal.addEventListener('abort', () => this.#firstApply.resolve(), { once: true });
    if (signal.aborted) return;
    await this.#firstApply.promise;
    while (!signal.aborted) {
      if (this.#isFresh()) await this.#mark(signal);
      await clock.sleep(heartbeatInterval, signal).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
    }
  }

  #isFresh(): boolean {
    const { status, sourceSilence } = this.#options;
    const { lastApplied, failure, pendingFor } = status();
    if (sourceSilence() >= maxSourceSilence) return false;
    return lastApplied !== undefined && failure === undefined && (pendingFor ?? 0) < heartbeatInterval;
  }

  async #mark(signal: AbortSignal): Promise<void> {
    const { backend, logger } = this.#options;
    const { ipFamily } = backend;
    try {
      await backend.observers.age?.mark(signal);
      if (this.#isFailing) logger.info('the age of the rules is kept in the kernel again', { ipFamily });
      this.#isFailing = false;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof HostError)) throw error;
      const log = this.#isFailing ? logger.debug : logger.warn;
      log.call(logger, 'cannot keep the age of the rules in the kernel, will retry', { ipFamily, error });
      this.#isFailing = true;
    }
  }
}
