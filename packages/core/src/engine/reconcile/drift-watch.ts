import { HostError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import { type Clock, type Millis, millis, seconds } from '../../base/time.ts';
import type { DataplaneBackend, Drift } from '../dataplane-backend.ts';
import type { ReconcileEvents } from './reconcile-events.ts';

/** Who watches, and who is told. */
export interface DriftWatchOptions {
  readonly backend: DataplaneBackend;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly events: ReconcileEvents;
  /** Asks for an apply that reads back what was reported, at once. */
  readonly requestRepair: () => void;
  /** Asks for an apply that reads the kernel back, at once. */
  readonly requestFullResync: () => void;
}

/** A drift, and when (monotonic) it was reported. */
interface ReportedDrift {
  readonly drift: Drift;
  readonly at: Millis;
}

/** Least time between two resyncs for drift, so that a fight with another program costs a bounded share of the node. */
export const driftGap: Millis = seconds(1);
/** After this long without drift a fight is over. */
const calm: Millis = seconds(10);
/** Wait before a watch that failed is tried again. */
const rewatchDelay: Millis = seconds(60);

/**
 * Answers foreign changes of our kernel objects: says so, counts, and asks for a full resync. The first drift
 * is answered at once. What comes less than `driftGap` after the last answer waits for the rest of it and is
 * answered together; that is a fight, which is warned of once and logged at debug until it is calm.
 */
export class DriftWatch {
  readonly #options: DriftWatchOptions;
  #lastReport = -Infinity;
  #lastAnswer = -Infinity;
  #isFight = false;
  #postponed: Promise<void> | undefined;
  /** The oldest drift not yet healed: one that no apply has begun to heal, and one that an apply did. */
  #reported: ReportedDrift | undefined;
  #healing: ReportedDrift | undefined;

  constructor(options: DriftWatchOptions) {
    this.#options = options;
  }

  /** Watches until aborted; resolves at once for a backend that cannot, and says so. */
  async run(signal: AbortSignal): Promise<void> {
    const { backend, clock, logger } = this.#options;
    const { ipFamily } = backend;
    const { drift: watch } = backend.observers;
    if (watch === undefined) {
      logger.info('foreign changes are not noticed by this backend; the regular resync finds them', { ipFamily });
      return;
    }
    while (!signal.aborted) {
      try {
        await watch((drift) => this.#note(drift, signal), signal);
        if (signal.aborted) break;
        throw new HostError('drift.ended', `${backend.name} stopped watching for foreign changes`);
      } catch (error) {
        if (signal.aborted) break;
        if (!(error instanceof HostError)) throw error;
        const retryMs = rewatchDelay;
        logger.warn('foreign changes are not noticed until the watch works again; the regular resync finds them', {
          ipFamily,
          error,
          retryMs,
        });
        await clock.sleep(rewatchDelay, signal).catch(ignoreAbort(signal));
        if (!signal.aborted) this.#options.requestFullResync(); // what changed meanwhile was not seen
      }
    }
    await this.#postponed;
  }

  /** An apply that reads the kernel back begins: it heals what was reported so far. */
  noteFullApply(): void {
    this.#healing ??= this.#reported;
    this.#reported = undefined;
  }

  /** The last apply that began succeeded; `unremoved`: but something stays in what is ours, and why. */
  noteApplied(unremoved?: Error): void {
    if (this.#healing === undefined) return;
    const { backend, clock, logger, events } = this.#options;
    const { drift, at } = this.#healing;
    if (unremoved !== undefined) return this.#noteUnremoved(unremoved);
    const durationMs = Math.round((clock.monotonic() - at) * 1000) / 1000;
    this.#healing = undefined;
    const log = this.#isFight ? logger.debug : logger.info;
    log.call(logger, 'drift healed', { ipFamily: backend.ipFamily, durationMs });
    events.driftHealed(drift, durationMs);
  }

  /** What stays is looked at again with the next drift or resync. */
  #noteUnremoved({ message: reason }: Error): void {
    const { backend, logger } = this.#options;
    this.#healing = undefined;
    const log = this.#isFight ? logger.debug : logger.warn;
    const text =
      'drift not healed: what somebody put into our rules could not be removed; the regular resync tries again';
    log.call(logger, text, { ipFamily: backend.ipFamily, reason });
  }

  #note(drift: Drift, signal: AbortSignal): void {
    const { kind, changes, process } = drift;
    const { backend, clock, logger, metrics } = this.#options;
    const { ipFamily } = backend;
    const now = clock.monotonic();
    metrics.add('switchyard_drift_total', { ip_family: ipFamily, kind });
    if (now - this.#lastReport >= calm) this.#isFight = false;
    this.#lastReport = now;
    this.#reported ??= { drift, at: now };
    const wait = this.#lastAnswer + driftGap - now;
    const fields = { ipFamily, kind, changes, process };
    if (this.#isFight) logger.debug('drift goes on', fields);
    else if (wait <= 0) logger.warn('drift: somebody changed our rules', fields);
    else {
      this.#isFight = true;
      logger.warn('drift: somebody keeps changing our rules; they are repaired at most once a second', fields);
    }
    if (wait <= 0) this.#answer();
    else this.#postponed ??= this.#answerLater(millis(wait), signal);
  }

  #answer(): void {
    this.#lastAnswer = this.#options.clock.monotonic();
    this.#options.requestRepair();
  }

  async #answerLater(wait: Millis, signal: AbortSignal): Promise<void> {
    await this.#options.clock.sleep(wait, signal).catch(ignoreAbort(signal));
    this.#postponed = undefined;
    if (!signal.aborted) this.#answer();
  }
}

function ignoreAbort(signal: AbortSignal): (error: unknown) => void {
  return (error) => {
    if (!signal.aborted) throw error;
  };
}
