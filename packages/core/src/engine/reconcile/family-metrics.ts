import type { ForwardingTable, ServiceForwarding, TableDelta } from '../../model/forwarding/forwarding-table.ts';
import type { IpFamily } from '../../model/ip/address.ts';
import type { CounterName, Metrics } from '../../metrics/metrics.ts';
import type { ServiceKey, ServicePortKey } from '../../model/records/keys.ts';
import type { ApplyOutcome } from '../dataplane-backend.ts';
import type { ClusterEvent } from '../../model/state/cluster-event.ts';
import type { Logger } from '../../base/log.ts';
import { type Clock, type Millis, millis, seconds } from '../../base/time.ts';

/** kube-proxy's name for failed applies of a backend. */
const failureCounters: Readonly<Record<string, FailureCounters>> = {
  nftables: {
    full: 'kubeproxy_sync_proxy_rules_nftables_sync_failures_total',
    delta: 'kubeproxy_sync_proxy_rules_nftables_sync_failures_total',
    countsPartial: false,
  },
  iptables: {
    full: 'kubeproxy_sync_proxy_rules_iptables_restore_failures_total',
    delta: 'kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total',
    countsPartial: true,
  },
};

/** By the scope of the apply. */
interface FailureCounters {
  readonly full: CounterName & `${string}_failures_total`;
  readonly delta: CounterName & `${string}_failures_total`;
  /** Whether an apply with failed Services counts as failed. */
  readonly countsPartial: boolean;
}

interface MeasuredApply {
  readonly scope: 'full' | 'delta';
  readonly durationMs: number;
  readonly outcome: ApplyOutcome;
}

/** Measurements of the applies of one family. */
export class FamilyMetrics {
  readonly #metrics: Metrics;
  readonly #labels: { readonly ip_family: IpFamily };
  readonly #failures: FailureCounters | undefined;
  /** Service ports that drop because no endpoint is local, by policy. */
  readonly #noLocal = { internal: new Set<ServicePortKey>(), external: new Set<ServicePortKey>() };
  #hasAdopted = false;

  constructor(metrics: Metrics, backend: { readonly name: string; readonly ipFamily: IpFamily }) {
    this.#metrics = metrics;
    this.#labels = { ip_family: backend.ipFamily };
    this.#failures = failureCounters[backend.name];
  }

  noteApply({ scope, durationMs, outcome }: MeasuredApply): void {
    const labels = this.#labels;
    const duration = durationMs / 1000;
    const byScope =
      scope === 'full'
        ? 'kubeproxy_sync_full_proxy_rules_duration_seconds'
        : 'kubeproxy_sync_partial_proxy_rules_duration_seconds';
    this.#metrics.observe('kubeproxy_sync_proxy_rules_duration_seconds', labels, duration);
    this.#metrics.observe(byScope, labels, duration);
    const failures = this.#failures;
    const hasFailed = outcome.status === 'failed' || (outcome.status === 'partial' && failures?.countsPartial === true);
    if (hasFailed && failures !== undefined) this.#metrics.add(failures[scope], labels);
    if (outcome.status === 'failed') return;
    this.#metrics.add('switchyard_apply_writes_total', labels, outcome.writes);
    if (this.#hasAdopted) return;
    this.#hasAdopted = true;
    this.#metrics.set('switchyard_adoption_duration_seconds', labels, duration);
    this.#metrics.set('switchyard_adoption_writes', labels, outcome.writes);
  }

  /** Records that the kernel matches `table`, the result of `delta`. */
  noteTable(table: ForwardingTable, delta: TableDelta): void {
    for (const [policy, services] of Object.entries(this.#noLocal)) {
      for (const service of delta.upserted) {
        if (dropsFor(service, policy === 'internal')) services.add(service.key);
        else services.delete(service.key);
      }
      for (const key of delta.removed) services.delete(key);
      const labels = { ...this.#labels, traffic_policy: policy };
      this.#metrics.set('kubeproxy_sync_proxy_rules_no_local_endpoints_total', labels, services.size);
    }
    this.#metrics.set('switchyard_service_ports', this.#labels, table.services.size);
  }
}

/** Whether the service drops packets of some sources because of its internal or external traffic policy. */
function dropsFor({ frontends }: ServiceForwarding, isInternal: boolean): boolean {
  return frontends.some(({ kind, decisions }) => {
    if ((kind === 'clusterIP') !== isInternal) return false;
    return Object.values(decisions).some((decision) => decision.kind === 'drop');
  });
}

/** Number of changes received until some moment. Only grows. */
export interface SeenChanges {
  readonly services: number;
  readonly endpointSlices: number;
}

/**
 * Counts the changes of Services and EndpointSlices, and how many of them wait for a family to apply them. Each object of a
 * full list counts as one, as in kube-proxy.
 */
export class ChangeCounts {
  readonly #metrics: Metrics;
  readonly #applied: Map<IpFamily, SeenChanges>;
  #seen: SeenChanges = { services: 0, endpointSlices: 0 };

  constructor(metrics: Metrics, ipFamilies: readonly IpFamily[]) {
    this.#metrics = metrics;
    this.#applied = new Map(ipFamilies.map((ipFamily) => [ipFamily, this.#seen]));
  }

  /** Returns the changes that an apply starting now contains. */
  get seen(): SeenChanges {
    return this.#seen;
  }

  /** Notes received events. `isDirty`: they require a rebuild; others do not wait. */
  note(batch: readonly ClusterEvent[], isDirty: boolean): void {
    const services = objectsOf(batch, 'Service');
    const endpointSlices = objectsOf(batch, 'EndpointSlice');
    if (services > 0) this.#metrics.add('kubeproxy_sync_proxy_rules_service_changes_total', {}, services);
    if (endpointSlices > 0) this.#metrics.add('kubeproxy_sync_proxy_rules_endpoint_changes_total', {}, endpointSlices);
    if (!isDirty || services + endpointSlices === 0) return;
    this.#seen = {
      services: this.#seen.services + services,
      endpointSlices: this.#seen.endpointSlices + endpointSlices,
    };
    this.#setPending();
  }

  /** Notes that a family has applied all changes received until then. */
  noteApplied(ipFamily: IpFamily, seen: SeenChanges): void {
    if (this.#applied.get(ipFamily) === seen) return;
    this.#applied.set(ipFamily, seen);
    this.#setPending();
  }

  #setPending(): void {
    const applied = [...this.#applied.values()];
    const pending = (key: keyof SeenChanges): number => this.#seen[key] - Math.min(...applied.map((one) => one[key]));
    this.#metrics.set('kubeproxy_sync_proxy_rules_service_changes_pending', {}, pending('services'));
    this.#metrics.set('kubeproxy_sync_proxy_rules_endpoint_changes_pending', {}, pending('endpointSlices'));
  }
}

function objectsOf(batch: readonly ClusterEvent[], resource: ClusterEvent['resource']): number {
  let count = 0;
  for (const event of batch) {
    if (event.resource === resource) count += event.kind === 'replace' ? event.items.length : 1;
  }
  return count;
}

/** A change of endpoints and its trigger time, in whole seconds. */
export interface ChangeTrigger {
  readonly service: ServiceKey;
  /** Trigger time in the slice; wall clock. */
  readonly triggerTime: Millis;
  /** The same by the monotonic clock of this process. */
  readonly changed: Millis;
}

interface ProgrammingLatencyOptions {
  readonly ipFamily: IpFamily;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** A change with the monotonic time of its arrival. */
interface Passage extends ChangeTrigger {
  readonly accepted: Millis;
}

/** Limit of changes that are measured between two applies. */
const maxWaiting = 1000;
/** Shortest latency that is logged, since trigger times are whole seconds. */
const worthALine = seconds(2);
/** Latency that is always logged. */
const slow = seconds(10);
/** Period of the maximum that a logged latency must exceed. */
const maximumAge = seconds(600);
/** Minimum interval between two log lines. */
const lineGap = seconds(10);

/**
 * Network programming latency of one family: from the trigger time of a change to the end of the apply that contains it. The
 * slowest change of an apply is logged if it is the slowest of the last ten minutes, or took ten seconds, with the
 * durations of its stages.
 */
export class ProgrammingLatency {
  readonly #options: ProgrammingLatencyOptions;
  #waiting: Passage[] = [];
  #inFlight: readonly Passage[] = [];
  #started: Millis = millis(0);
  #applying: Millis = millis(0);
  #maximum: { readonly duration: number; readonly at: Millis } | undefined;
  #lastLine = -Infinity;
  #omitted = 0;

  constructor(options: ProgrammingLatencyOptions) {
    this.#options = options;
  }

  /** Notes changes with their monotonic time of arrival; the next run contains them. */
  accept(triggers: readonly ChangeTrigger[], accepted: Millis = this.#options.clock.monotonic()): void {
    if (triggers.length === 0) return;
    const room = maxWaiting - this.#waiting.length;
    for (const trigger of triggers.slice(0, Math.max(0, room))) this.#waiting.push({ ...trigger, accepted });
  }

  /** Notes the start of a run with all changes so far. */
  beginRun(): void {
    this.#inFlight = [...this.#inFlight, ...this.#waiting].slice(0, maxWaiting);
    this.#waiting = [];
    this.#started = this.#applying = this.#options.clock.monotonic();
  }

  /** Notes that the table is built and the apply starts. A failed run is not noted: the next one contains its changes. */
  beginApply(): void {
    this.#applying = this.#options.clock.monotonic();
  }

  /** Notes that the changes of the run are in the kernel. */
  finishRun(): void {
    if (this.#inFlight.length === 0) return;
    const { clock, metrics, ipFamily } = this.#options;
    const now = clock.monotonic();
    let slowest: Passage | undefined;
    for (const passage of this.#inFlight) {
      const latency = (now - passage.changed) / 1000;
      metrics.observe('kubeproxy_network_programming_duration_seconds', { ip_family: ipFamily }, latency);
      if (slowest === undefined || passage.changed < slowest.changed) slowest = passage;
    }
    this.#inFlight = [];
    if (slowest !== undefined) this.#report(slowest, now);
  }

  #report(slowest: Passage, now: Millis): void {
    const { logger, ipFamily } = this.#options;
    const duration = now - slowest.changed;
    if (duration < worthALine) return;
    if (this.#maximum !== undefined && now - this.#maximum.at > maximumAge) this.#maximum = undefined;
    const isMaximum = duration > (this.#maximum?.duration ?? 0);
    if (isMaximum) this.#maximum = { duration, at: now };
    else if (duration < slow) return;
    if (now - this.#lastLine < lineGap) {
      this.#omitted++;
      return;
    }
    logger.info('slow network programming', {
      ipFamily,
      service: slowest.service,
      triggerTime: new Date(slowest.triggerTime).toISOString(),
      durationMs: rounded(duration),
      untilHeardMs: rounded(slowest.accepted - slowest.changed),
      waitedMs: rounded(this.#started - slowest.accepted),
      buildMs: rounded(this.#applying - this.#started),
      applyMs: rounded(now - this.#applying),
      isSlowestOfTenMinutes: isMaximum,
      omittedLines: this.#omitted,
    });
    this.#lastLine = now;
    this.#omitted = 0;
  }
}

function rounded(duration: number): number {
  return Math.round(duration * 1000) / 1000;
}
