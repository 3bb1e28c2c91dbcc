import type { IpFamily } from '../../model/ip/address.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { ServicePortKey } from '../../model/records/keys.ts';
import type { ResourceKind } from '../../model/state/cluster-event.ts';
import type { Clock, Millis } from '../../base/time.ts';
import type { ReconcileEvents } from './reconcile-events.ts';

/** A failure and its start (wall clock). */
export interface Failure {
  readonly text: string;
  readonly since: Millis;
}

/** Status of one family. */
export interface FamilyStatus {
  readonly ipFamily: IpFamily;
  /** Wall clock of the last apply that was not refused as a whole; undefined before the first. */
  readonly lastApplied: Millis | undefined;
  /** Generation of the table in the kernel; undefined before the first apply. */
  readonly generation: number | undefined;
  /** Waiting time of the oldest change; undefined when none waits. */
  readonly pendingFor: Millis | undefined;
  /** Failure of the last apply as a whole; undefined after a success. */
  readonly failure: Failure | undefined;
  /** Service ports whose last apply failed. */
  readonly failedServices: ReadonlyMap<ServicePortKey, Failure>;
}

/** Status of the reconciler. */
export interface ReconcilerStatus {
  /** Whether every resource was listed in full once. */
  readonly isInSync: boolean;
  /** Resources not yet listed in full. */
  readonly missingResources: readonly ResourceKind[];
  /** KEP-3836. True until all Nodes were listed; then false if the Node of this agent is unknown or being removed. */
  readonly isNodeEligible: boolean;
  readonly families: ReadonlyMap<IpFamily, FamilyStatus>;
}

/** Options of an `ApplyLog`. */
export interface ApplyLogOptions {
  readonly ipFamily: IpFamily;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly events: ReconcileEvents;
}

/**
 * Failures of one family. Writes a log line when a failure begins, when its reason changes, and when it ends, and an Event
 * when it begins; never for a repetition.
 */
export class ApplyLog {
  readonly #options: ApplyLogOptions;
  #failure: Failure | undefined;
  /** Monotonic, since the wall clock may be set in between. */
  #failedSince: number | undefined;
  #failedServices: ReadonlyMap<ServicePortKey, Failure> = new Map();

  constructor(options: ApplyLogOptions) {
    this.#options = options;
  }

  get failure(): Failure | undefined {
    return this.#failure;
  }

  get failedServices(): ReadonlyMap<ServicePortKey, Failure> {
    return this.#failedServices;
  }

  /** Notes that the kernel matches the table except for the services in `failed`. */
  noteApplied(failed: ReadonlyMap<ServicePortKey, Error>): void {
    const { logger, clock, metrics, ipFamily, events } = this.#options;
    if (this.#failure !== undefined) {
      const failedForMs = clock.monotonic() - (this.#failedSince ?? clock.monotonic());
      logger.info('apply works again', { ipFamily, failedForMs });
      this.#failure = undefined;
      this.#failedSince = undefined;
    }
    const next = new Map<ServicePortKey, Failure>();
    for (const [key, error] of failed) {
      const before = this.#failedServices.get(key);
      if (before?.text === error.message) next.set(key, before);
      else {
        next.set(key, { text: error.message, since: before?.since ?? clock.now() });
        logger.warn('service not applied, will retry', { ipFamily, service: key, error });
        events.serviceFailed(key, error);
      }
    }
    for (const key of this.#failedServices.keys()) {
      if (!next.has(key)) logger.info('service no longer failing', { ipFamily, service: key });
    }
    this.#failedServices = next;
    metrics.set('switchyard_failed_services', { ip_family: ipFamily }, next.size);
  }

  /** Notes an apply that failed as a whole. */
  noteFailed(error: Error): void {
    const { logger, clock, metrics, ipFamily, events } = this.#options;
    metrics.add('switchyard_apply_failures_total', { ip_family: ipFamily });
    this.#failedSince ??= clock.monotonic();
    if (this.#failure?.text === error.message) return;
    logger.warn('apply failed, will retry in full', { ipFamily, error });
    events.applyFailed(error);
    this.#failure = { text: error.message, since: this.#failure?.since ?? clock.now() };
  }
}
