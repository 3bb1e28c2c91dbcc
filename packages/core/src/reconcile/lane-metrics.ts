import type { ForwardingTable, ServiceForwarding, TableDelta } from '../forwarding/forwarding-table.ts';
import type { IpFamily } from '../ip/address.ts';
import type { CounterName, Metrics } from '../metrics.ts';
import type { ServicePortKey } from '../records/keys.ts';
import type { ApplyOutcome, DataplaneBackend, RestoreCounts } from './dataplane-backend.ts';

/** What failed applies of a backend are called by kube-proxy. */
const failureCounters: Readonly<Record<string, CounterName & `${string}_sync_failures_total`>> = {
  nftables: 'kubeproxy_sync_proxy_rules_nftables_sync_failures_total',
};

/** The backend, as far as it is measured. */
type MeasuredBackend = Pick<DataplaneBackend, 'name' | 'ipFamily' | 'restoreCounts'>;

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
  readonly #failures: (typeof failureCounters)[string] | undefined;
  /** Service ports that drop because no endpoint is local, by the policy that says so. */
  readonly #noLocal = { internal: new Set<ServicePortKey>(), external: new Set<ServicePortKey>() };
  readonly #backend: MeasuredBackend;
  #restores: Pick<RestoreCounts, 'failures' | 'partialFailures'> = { failures: 0, partialFailures: 0 };
  #hasAdopted = false;

  constructor(metrics: Metrics, backend: MeasuredBackend) {
    this.#metrics = metrics;
    this.#labels = { ip_family: backend.ipFamily };
    this.#failures = failureCounters[backend.name];
    this.#backend = backend;
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
    this.#noteRestores();
    if (outcome.status === 'failed') {
      if (this.#failures !== undefined) this.#metrics.add(this.#failures, labels);
      return;
    }
    this.#metrics.add('switchyard_apply_writes_total', labels, outcome.writes);
    if (this.#hasAdopted) return;
    this.#hasAdopted = true;
    this.#metrics.set('switchyard_adoption_duration_seconds', labels, duration);
    this.#metrics.set('switchyard_adoption_writes', labels, outcome.writes);
  }

  #noteRestores(): void {
    const counts = this.#backend.restoreCounts?.();
    if (counts === undefined) return;
    const [metrics, labels, before] = [this.#metrics, this.#labels, this.#restores];
    this.#restores = counts;
    metrics.add(
      'kubeproxy_sync_proxy_rules_iptables_restore_failures_total',
      labels,
      counts.failures - before.failures,
    );
    metrics.add(
      'kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total',
      labels,
      counts.partialFailures - before.partialFailures,
    );
    for (const [table, { owned, written }] of counts.rules) {
      metrics.set('kubeproxy_sync_proxy_rules_iptables_total', { ...labels, table }, owned);
      metrics.set('kubeproxy_sync_proxy_rules_iptables_last', { ...labels, table }, written);
    }
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
