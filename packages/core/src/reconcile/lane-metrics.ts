import type { ForwardingTable, ServiceForwarding, TableDelta } from '../forwarding/forwarding-table.ts';
import type { IpFamily } from '../ip/address.ts';
import type { CounterName, Metrics } from '../metrics.ts';
import type { ServicePortKey } from '../records/keys.ts';
import type { ApplyOutcome } from './dataplane-backend.ts';

/** What failed applies of a backend are called by kube-proxy. */
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
  /** An apply that left out some Services has failed, too. */
  readonly countsPartial: boolean;
}

/** One apply, as far as it is measured. */
export interface MeasuredApply {
  readonly scope: 'full' | 'delta';
  readonly durationMs: number;
  readonly outcome: ApplyOutcome;
}

/** What the applies of one family measure. */
export class LaneMetrics {
  readonly #metrics: Metrics;
  readonly #labels: { readonly ip_family: IpFamily };
  readonly #failures: FailureCounters | undefined;
  /** Service ports that drop because no endpoint is local, by the policy that says so. */
  readonly #noLocal = { internal: new Set<ServicePortKey>(), external: new Set<ServicePortKey>() };
  #hasAdopted = false;

  constructor(metrics: Metrics, backend: { readonly name: string; readonly ipFamily: IpFamily }) {
    this.#metrics = metrics;
    this.#labels = { ip_family: backend.ipFamily };
    this.#failures = failureCounters[backend.name];
  }

  /** An apply has ended, well or not. */
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

  /** The kernel matches `table`, to which `delta` led. */
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

/** Whether the service stays silent to somebody because of its internal, or its external, traffic policy. */
function dropsFor({ frontends }: ServiceForwarding, isInternal: boolean): boolean {
  return frontends.some(({ kind, decisions }) => {
    if ((kind === 'clusterIP') !== isInternal) return false;
    return Object.values(decisions).some((decision) => decision.kind === 'drop');
  });
}
