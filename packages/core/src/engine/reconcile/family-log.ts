import { type EventRecorder, type Logger, nodeSubject, serviceSubject } from '../../base/log.ts';
import type { Clock, Millis } from '../../base/time.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { ServiceForwarding, TableDelta } from '../../model/forwarding/forwarding-table.ts';
import { addressAndPort } from '../../model/ip/port.ts';
import type { IpFamily } from '../../model/ip/address.ts';
import { type NodeName, type ServicePortKey, servicePortParts } from '../../model/records/keys.ts';
import type { NodeRecord } from '../../model/records/records.ts';
import type { ResourceKind } from '../../model/state/cluster-event.ts';
import type { BackendCapabilities, DataplaneBackend } from '../dataplane-backend.ts';

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
  /**
   * The resourceVersion of EndpointSlices up to which the kernel has them, except for failed services: 0 before the first apply, and if
   * the source names none.
   */
  readonly slicesVersion: number;
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

/** Dependencies of the parts of one family. The recorder of events merges repetitions. */
export interface FamilyHost {
  readonly backend: DataplaneBackend;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly nodeName: NodeName;
  readonly events: EventRecorder;
}

interface Warning {
  readonly reason: string;
  readonly action: string;
  readonly note: string;
}

/** Records a Warning about a family on the Node. */
export function warnOnNode({ backend, nodeName, events }: FamilyHost, { note, ...warning }: Warning): void {
  events.record({
    type: 'Warning',
    ...warning,
    regarding: nodeSubject(nodeName),
    note: `${backend.ipFamily}: ${note}`,
  });
}

function warnOnService({ events }: FamilyHost, service: ServicePortKey, warning: Warning): void {
  events.record({ type: 'Warning', ...warning, regarding: serviceSubject(servicePortParts(service)) });
}

/**
 * Failures of one family. Writes a log line when a failure begins, when its reason changes, and when it ends, and an Event
 * when it begins; never for a repetition.
 */
export class ApplyLog {
  readonly #host: FamilyHost;
  #failure: Failure | undefined;
  /** Monotonic, since the wall clock may be set in between. */
  #failedSince: number | undefined;
  #failedServices: ReadonlyMap<ServicePortKey, Failure> = new Map();

  constructor(host: FamilyHost) {
    this.#host = host;
  }

  get failure(): Failure | undefined {
    return this.#failure;
  }

  get failedServices(): ReadonlyMap<ServicePortKey, Failure> {
    return this.#failedServices;
  }

  /** Notes that the kernel matches the table except for the services in `failed`. */
  noteApplied(failed: ReadonlyMap<ServicePortKey, Error>): void {
    const { logger, clock, metrics, backend, nodeName } = this.#host;
    const { ipFamily } = backend;
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
        const note = `node ${nodeName}, ${ipFamily}: ${key} is not forwarded as it should be, will be tried again: ${error.message}`;
        warnOnService(this.#host, key, { reason: 'FailedToApply', action: 'Apply', note });
      }
    }
    for (const key of this.#failedServices.keys()) {
      if (!next.has(key)) logger.info('service no longer failing', { ipFamily, service: key });
    }
    this.#failedServices = next;
    metrics.set('switchyard_failed_services', { ip_family: ipFamily }, next.size);
  }

  noteFailed(error: Error): void {
    const { logger, clock, metrics, backend } = this.#host;
    const { ipFamily } = backend;
    metrics.add('switchyard_apply_failures_total', { ip_family: ipFamily });
    this.#failedSince ??= clock.monotonic();
    if (this.#failure?.text === error.message) return;
    logger.warn('apply failed, will retry in full', { ipFamily, error });
    const note = `will be tried again: ${error.message}`;
    warnOnNode(this.#host, { reason: 'FailedToApply', action: 'Apply', note });
    this.#failure = { text: error.message, since: this.#failure?.since ?? clock.now() };
  }
}

/** Reports the faults of each service port once, and again when they change. */
export class ServiceFaults {
  readonly #find: (service: ServiceForwarding) => readonly string[];
  readonly #report: (service: ServicePortKey, faults: readonly string[]) => void;
  readonly #reported = new Map<ServicePortKey, string>();

  /** `find` returns the faults of a service; empty for most. */
  constructor(
    find: (service: ServiceForwarding) => readonly string[],
    report: (service: ServicePortKey, faults: readonly string[]) => void,
  ) {
    this.#find = find;
    this.#report = report;
  }

  note({ upserted, removed }: Pick<TableDelta, 'upserted' | 'removed'>): void {
    for (const key of removed) this.#reported.delete(key);
    for (const service of upserted) {
      const { key } = service;
      const faults = this.#find(service);
      const text = faults.join();
      if (text === (this.#reported.get(key) ?? '')) continue;
      if (text === '') this.#reported.delete(key);
      else {
        this.#reported.set(key, text);
        this.#report(key, faults);
      }
    }
  }
}

/** Warns of services that need a feature that the backend lacks. Without source ranges a service is open to every source. */
export function missingFeatureLog({ backend, logger }: Pick<FamilyHost, 'backend' | 'logger'>): ServiceFaults {
  const { ipFamily, capabilities } = backend;
  return new ServiceFaults(
    (service) => missingFeatures(service, capabilities),
    (service, lacks) =>
      logger.warn('service needs a feature that this dataplane lacks; it is forwarded without', {
        ipFamily,
        service,
        lacks,
      }),
  );
}

/** Returns features that the service needs and the backend lacks, by the API's field names. */
export function missingFeatures(service: ServiceForwarding, capabilities: BackendCapabilities): readonly string[] {
  const isRestricted = service.frontends.some(({ allowedSources }) => allowedSources !== 'any');
  return [
    ...(!capabilities.sessionAffinity && service.sessionAffinity.kind !== 'none' ? ['sessionAffinity'] : []),
    ...(!capabilities.sourceRanges && isRestricted ? ['loadBalancerSourceRanges'] : []),
  ];
}

/** Warns of Services that claim an address at which this process reaches the API server; it is not forwarded. */
export function apiServerLog(host: FamilyHost): ServiceFaults {
  const { logger, nodeName } = host;
  return new ServiceFaults(exempted, (service, addresses) => {
    logger.warn('service claims an address of the API server; this address is not forwarded', { service, addresses });
    const note = `node ${nodeName}: ${service} claims ${addresses.join(', ')}, where this node reaches the API server; it is not forwarded there`;
    warnOnService(host, service, { reason: 'ApiServerAddressNotForwarded', action: 'Forward', note });
  });
}

function exempted({ lostFrontends }: ServiceForwarding): readonly string[] {
  return lostFrontends.flatMap(({ winner, frontend: { address, port } }) =>
    winner === 'apiServer' ? [addressAndPort(address, port)] : [],
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
