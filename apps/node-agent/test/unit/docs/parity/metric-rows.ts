import { type MetricDeclaration, type MetricDeclarations, metricDeclarations } from '@switchyard/core';
import { refusedMetrics } from '../refused-metrics.ts';
import type { ParityRow, ReleaseRange } from './row.ts';

/** One metric of kube-proxy on Linux. */
export interface TheirMetric extends ReleaseRange {
  readonly name: string;
}

const inAllReleases = `
  kubeproxy_conntrack_reconciler_deleted_entries_total
  kubeproxy_conntrack_reconciler_sync_duration_seconds
  kubeproxy_iptables_ct_state_invalid_dropped_packets_total
  kubeproxy_iptables_localhost_nodeports_accepted_packets_total
  kubeproxy_network_programming_duration_seconds
  kubeproxy_proxy_healthz_total
  kubeproxy_proxy_livez_total
  kubeproxy_sync_full_proxy_rules_duration_seconds
  kubeproxy_sync_partial_proxy_rules_duration_seconds
  kubeproxy_sync_proxy_rules_duration_seconds
  kubeproxy_sync_proxy_rules_endpoint_changes_pending
  kubeproxy_sync_proxy_rules_endpoint_changes_total
  kubeproxy_sync_proxy_rules_iptables_last
  kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total
  kubeproxy_sync_proxy_rules_iptables_restore_failures_total
  kubeproxy_sync_proxy_rules_iptables_total
  kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds
  kubeproxy_sync_proxy_rules_last_timestamp_seconds
  kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total
  kubeproxy_sync_proxy_rules_nftables_sync_failures_total
  kubeproxy_sync_proxy_rules_no_local_endpoints_total
  kubeproxy_sync_proxy_rules_service_changes_pending
  kubeproxy_sync_proxy_rules_service_changes_total
  kubernetes_build_info
  kubernetes_feature_enabled
  kubernetes_healthcheck
  kubernetes_healthchecks_total
  process_cpu_seconds_total
  process_max_fds
  process_open_fds
  process_resident_memory_bytes
  process_start_time_seconds
  process_virtual_memory_bytes
  rest_client_request_duration_seconds
  rest_client_requests_total
`
  .trim()
  .split(/\s+/);

/** Every metric of kube-proxy that has a meaning in a process that is not written in Go, by its first release. */
export const theirMetrics: readonly TheirMetric[] = [
  ...inAllReleases.map((name) => ({ name })),
  { name: 'kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total', since: '1.37' },
  { name: 'kubeproxy_nftables_localhost_nodeport_listeners', since: '1.37' },
  { name: 'kubeproxy_nftables_localhost_nodeport_rejected_packets_total', since: '1.37' },
];

/** The agent's declarations of kube-proxy's metrics, by name. */
export function declaredMetrics(
  { counters, gauges, histograms, collected }: MetricDeclarations = metricDeclarations['kube-proxy'],
): ReadonlyMap<string, MetricDeclaration> {
  return new Map(Object.entries<MetricDeclaration>({ ...counters, ...gauges, ...histograms, ...collected }));
}

const theirNames: ReadonlySet<string> = new Set(theirMetrics.map(({ name }) => name));

/** Metrics of kube-proxy by name, then other names and groups of names that the agent does not serve. */
export const metricRows: readonly ParityRow[] = [
  ...theirMetrics.map(({ name, ...range }): ParityRow => ({
    what: `\`${name}\``,
    ...range,
    ...standingOfMetric(name),
  })),
  ...refusedMetrics
    .filter(({ name }) => !theirNames.has(name))
    .map(({ name, since, reason }): ParityRow => ({
      what: `\`${name}\``,
      ...(since === undefined ? {} : { since }),
      standing: 'missing',
      note: reason,
    })),
];

function standingOfMetric(name: string): Pick<ParityRow, 'standing' | 'note'> {
  const refused = refusedMetrics.find((metric) => metric.name === name);
  if (refused !== undefined) return { standing: 'missing', note: refused.reason };
  const difference = declaredMetrics().get(name)?.difference;
  return difference === undefined ? { standing: 'same', note: '' } : { standing: 'different', note: difference };
}
