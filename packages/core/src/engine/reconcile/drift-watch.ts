import { sleepUnlessAborted } from '../../base/abortable.ts';
import { HostError } from '../../base/errors.ts';
import { type Millis, millis, seconds } from '../../base/time.ts';
import type { Drift } from '../dataplane-backend.ts';
import { type FamilyHost, warnOnNode } from './family-log.ts';

interface Applies {
  /** Reads back only the reported objects. */
  readonly requestRepair: () => void;
  readonly requestFullResync: () => void;
}

interface ReportedDrift {
  readonly drift: Drift;
  readonly at: Millis;
}

/** Minimum interval between two repairs, so that a fight with another program costs a bounded share of the node. */
const driftGap: Millis = seconds(1);
/** Time without drift after which a fight is over. */
const calm: Millis = seconds(10);
/** Wait before a watch that failed is tried again. */
const rewatchDelay: Millis = seconds(60);

/**
 * Reacts to foreign changes of the kernel objects of a backend: logs and counts them and requests a repair. The first drift
 * is repaired at once. Drifts less than `driftGap` after the last repair are repaired together at its end. They are a
 * fight, which is logged as one warning and then at debug level until it is over.
 */
export class DriftWatch {
  readonly #host: FamilyHost;
  readonly #applies: Applies;
  #lastReport = -Infinity;
  #lastAnswer = -Infinity;
  #isFight = false;
  #postponed: Promise<void> | undefined;
  /** Oldest drift that no apply has begun to repair, and oldest one that an apply is repairing. */
  #reported: ReportedDrift | undefined;
  #healing: ReportedDrift | undefined;

  constructor(host: FamilyHost, applies: Applies) {
    this.#host = host;
    this.#applies = applies;
  }

  /** Watches until aborted; logs and resolves at once for a backend that cannot watch. */
  async run(signal: AbortSignal): Promise<void> {
    const { backend, clock, logger } = this.#host;
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
        logger.warn('foreign changes are not noticed until the watch works again; the regular resync finds them', {
          ipFamily,
          error,
          retryMs: rewatchDelay,
        });
        await sleepUnlessAborted(clock, rewatchDelay, signal);
        if (!signal.aborted) this.#applies.requestFullResync(); // changes in between were not reported
      }
    }
    await this.#postponed;
  }

  /** Notes the start of an apply that reads the kernel back and repairs the reported drift. */
  noteFullApply(): void {
    this.#healing ??= this.#reported;
    this.#reported = undefined;
  }

  /** Notes the success of the last apply; `unremoved`: the reason why a foreign object remains. */
  noteApplied(unremoved?: Error): void {
    if (this.#healing === undefined) return;
    const { backend, clock, logger } = this.#host;
    const { drift, at } = this.#healing;
    const { ipFamily } = backend;
    this.#healing = undefined;
    if (unremoved !== undefined) {
      // The next drift or resync tries to remove it again.
      const text =
        'drift not healed: a foreign object in the rules could not be removed; the regular resync tries again';
      logger[this.#isFight ? 'debug' : 'warn'](text, { ipFamily, reason: unremoved.message });
      return;
    }
    const durationMs = Math.round((clock.monotonic() - at) * 1000) / 1000;
    logger[this.#isFight ? 'debug' : 'info']('drift healed', { ipFamily, durationMs });
    const who = drift.process === undefined ? 'another process' : `${drift.process.name} (pid ${drift.process.pid})`;
    const what = drift.changes.join(', ') || drift.kind;
    warnOnNode(this.#host, {
      reason: 'ForwardingRulesRepaired',
      action: 'RepairForwardingRules',
      note: `${who} changed the forwarding rules in the kernel (${what}); they are repaired after ${durationMs} ms`,
    });
  }

  #note(drift: Drift, signal: AbortSignal): void {
    const { kind, changes, process } = drift;
    const { backend, clock, logger, metrics } = this.#host;
    const { ipFamily } = backend;
    const now = clock.monotonic();
    metrics.add('switchyard_drift_total', { ip_family: ipFamily, kind });
    if (now - this.#lastReport >= calm) this.#isFight = false;
    this.#lastReport = now;
    this.#reported ??= { drift, at: now };
    const wait = this.#lastAnswer + driftGap - now;
    const fields = { ipFamily, kind, changes, process };
    if (this.#isFight) logger.debug('drift continues', fields);
    else if (wait <= 0) logger.warn('drift: another process changed the rules', fields);
    else {
      this.#isFight = true;
      logger.warn('drift: another process keeps changing the rules; they are repaired at most once a second', fields);
    }
    if (wait <= 0) this.#answer();
    else this.#postponed ??= this.#answerLater(millis(wait), signal);
  }

  #answer(): void {
    this.#lastAnswer = this.#host.clock.monotonic();
    this.#applies.requestRepair();
  }

  async #answerLater(wait: Millis, signal: AbortSignal): Promise<void> {
    await sleepUnlessAborted(this.#host.clock, wait, signal);
    this.#postponed = undefined;
    if (!signal.aborted) this.#answer();
  }
}
