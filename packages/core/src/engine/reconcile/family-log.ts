import type { IpFamily } from '../../model/ip/address.ts';
import { type Logger, type EventRecorder, nodeSubject, serviceSubject } from '../../base/log.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import { type ServicePortKey, type NodeName, servicePortParts } from '../../model/records/keys.ts';
import type { ResourceKind } from '../../model/state/cluster-event.ts';
import type { Clock, Millis } from '../../base/time.ts';
import type { ServiceForwarding, TableDelta } from '../../model/forwarding/forwarding-table.ts';
import type { BackendCapabilities, Drift } from '../dataplane-backend.ts';
import type { NodeRecord } from '../../model/records/records.ts';

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
interface ApplyLogOptions {
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

/** Feature of a Service that a backend may lack; the API's field name. */
type OptionalFeature = 'sessionAffinity' | 'loadBalancerSourceRanges';

/** Returns features that the service needs and the backend lacks. Empty for most. */
export function missingFeatures(
  service: ServiceForwarding,
  capabilities: BackendCapabilities,
): readonly OptionalFeature[] {
  const missing: OptionalFeature[] = [];
  if (!capabilities.sessionAffinity && service.sessionAffinity.kind !== 'none') missing.push('sessionAffinity');
  const isRestricted = service.frontends.some((frontend) => frontend.allowedSources !== 'any');
  if (!capabilities.sourceRanges && isRestricted) missing.push('loadBalancerSourceRanges');
  return missing;
}

/**
 * Warns once for each service that needs a missing feature, and again when its missing features change. Without source
 * ranges, for example, a service is open to every source.
 */
export class MissingFeatureLog {
  readonly #options: {
    readonly ipFamily: IpFamily;
    readonly capabilities: BackendCapabilities;
    readonly logger: Logger;
  };
  readonly #warned = new Map<ServicePortKey, string>();

  constructor(options: {
    readonly ipFamily: IpFamily;
    readonly capabilities: BackendCapabilities;
    readonly logger: Logger;
  }) {
    this.#options = options;
  }

  /** Notes the changes of an apply. */
  note(delta: Pick<TableDelta, 'upserted' | 'removed'>): void {
    const { ipFamily, capabilities, logger } = this.#options;
    for (const key of delta.removed) this.#warned.delete(key);
    for (const service of delta.upserted) {
      const lacks = missingFeatures(service, capabilities);
      const text = lacks.join();
      const before = this.#warned.get(service.key) ?? '';
      if (text === before) continue;
      if (text === '') {
        this.#warned.delete(service.key);
        continue;
      }
      this.#warned.set(service.key, text);
      logger.warn('service needs a feature that this dataplane lacks; it is forwarded without', {
        ipFamily,
        service: service.key,
        lacks,
      });
    }
  }
}

/** Receivers of the warnings. */
interface ApiServerLogOptions {
  readonly logger: Logger;
  readonly events: ReconcileEvents;
}

/** Warns once for each Service port that claims an address of the API server, and again when the addresses change. */
export class ApiServerLog {
  readonly #options: ApiServerLogOptions;
  readonly #warned = new Map<ServicePortKey, string>();

  constructor(options: ApiServerLogOptions) {
    this.#options = options;
  }

  /** Notes the changes of an apply. */
  note(delta: Pick<TableDelta, 'upserted' | 'removed'>): void {
    const { logger, events } = this.#options;
    for (const key of delta.removed) this.#warned.delete(key);
    for (const service of delta.upserted) {
      const addresses = exempted(service);
      const text = addresses.join(', ');
      if (text === (this.#warned.get(service.key) ?? '')) continue;
      this.#warned.set(service.key, text);
      if (text === '') continue;
      logger.warn('service claims an address of the API server; this address is not forwarded', {
        service: service.key,
        addresses,
      });
      events.apiServerAddressRefused(service.key, text);
    }
  }
}

function exempted({ lostFrontends }: ServiceForwarding): readonly string[] {
  return lostFrontends.flatMap(({ winner, frontend: { address, port } }) =>
    winner === 'apiServer' ? [address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`] : [],
  );
}

/** Limit of remembered Services and values; beyond it they are logged again. */
const maxRemembered = 1000;

/** Warns once for each Service and `ipMode` of its status that this node does not know. All families share one log. */
export class IpModeLog {
  readonly #logger: Logger;
  readonly #warned = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Notes the changes of an apply. */
  note({ upserted }: Pick<TableDelta, 'upserted'>): void {
    for (const { service, frontends } of upserted) {
      for (const { ipMode } of frontends) {
        if (ipMode === undefined || ipMode.takenAs === ipMode.written) continue;
        const key = `${service} ${ipMode.written}`;
        if (this.#warned.has(key)) continue;
        if (this.#warned.size >= maxRemembered) this.#warned.clear();
        this.#warned.add(key);
        this.#logger.warn('unknown ipMode of a load-balancer IP; its traffic is captured as with VIP', {
          service,
          ipMode: ipMode.written.slice(0, 200),
        });
      }
    }
  }
}

/** Reasons for a 503 of /healthz (KEP-3836), for the operator. */
const leaving = 'the Node has the taint ToBeDeletedByClusterAutoscaler, or is being deleted';
const unknown = 'the cluster has no such Node; check --hostname-override';

/** Logs when /healthz begins to answer 503 because of the Node of this agent, and when that ends. */
export class EligibilityLog {
  readonly #nodeName: NodeName;
  readonly #logger: Logger;
  #reason: string | undefined;

  constructor(nodeName: NodeName, logger: Logger) {
    this.#nodeName = nodeName;
    this.#logger = logger;
  }

  /** Notes the present Node of this agent, once all Nodes were listed; undefined when there is none. */
  note(node: NodeRecord | undefined): void {
    const reason = node === undefined ? unknown : node.isEligible ? undefined : leaving;
    if (reason === this.#reason) return;
    this.#reason = reason;
    const nodeName = this.#nodeName;
    if (reason === undefined) this.#logger.info('load balancers may use this node again', { nodeName });
    else this.#logger.warn('load balancers must not use this node: /healthz answers 503', { nodeName, reason });
  }
}

/** Reporter and family of events. */
interface ReconcileEventsOptions {
  readonly ipFamily: IpFamily;
  readonly nodeName: NodeName;
  readonly events: EventRecorder;
}

/** Records Events of one family. The recorder merges repetitions. */
export class ReconcileEvents {
  readonly #options: ReconcileEventsOptions;

  constructor(options: ReconcileEventsOptions) {
    this.#options = options;
  }

  /** Records that a foreign change of the rules was repaired. */
  driftHealed({ kind, changes, process }: Drift, durationMs: number): void {
    const who = process === undefined ? 'another process' : `${process.name} (pid ${process.pid})`;
    this.#onNode({
      type: 'Warning',
      reason: 'ForwardingRulesRepaired',
      action: 'RepairForwardingRules',
      note: `${who} changed the forwarding rules in the kernel (${changes.join(', ') || kind}); they are repaired after ${durationMs} ms`,
    });
  }

  /** Records that an apply began to fail as a whole. */
  applyFailed(error: Error): void {
    this.#onNode({
      type: 'Warning',
      reason: 'FailedToApply',
      action: 'Apply',
      note: `will be tried again: ${error.message}`,
    });
  }

  /** Records that applying a Service began to fail. */
  serviceFailed(service: ServicePortKey, error: Error): void {
    const { events, ipFamily, nodeName } = this.#options;
    events.record({
      type: 'Warning',
      reason: 'FailedToApply',
      action: 'Apply',
      regarding: serviceSubject(servicePortParts(service)),
      note: `node ${nodeName}, ${ipFamily}: ${service} is not forwarded as it should be, will be tried again: ${error.message}`,
    });
  }

  /** Records that a Service claims addresses at which this process reaches the API server; they are not forwarded. */
  apiServerAddressRefused(service: ServicePortKey, addresses: string): void {
    const { events, nodeName } = this.#options;
    events.record({
      type: 'Warning',
      reason: 'ApiServerAddressNotForwarded',
      action: 'Forward',
      regarding: serviceSubject(servicePortParts(service)),
      note: `node ${nodeName}: ${service} claims ${addresses}, where this node reaches the API server; it is not forwarded there`,
    });
  }

  #onNode(event: {
    readonly type: 'Normal' | 'Warning';
    readonly reason: string;
    readonly action: string;
    readonly note: string;
  }): void {
    const { events, ipFamily, nodeName } = this.#options;
    events.record({ ...event, regarding: nodeSubject(nodeName), note: `${ipFamily}: ${event.note}` });
  }
}
