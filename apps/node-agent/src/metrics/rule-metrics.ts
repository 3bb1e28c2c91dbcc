import type { DataplaneBackend } from '@switchyard/core/engine';
import { collectedFamily, type MetricFamily } from '@switchyard/host';
import type { Collector } from './metrics-page.ts';

/** Options of the metrics of rules, in the iptables mode. */
export interface RuleMetricsOptions {
  readonly backends: readonly DataplaneBackend[];
  /** Packets by the names of netfilter accounting. Throws if the kernel has none, or refuses access. */
  readonly packetCounts: () => Promise<ReadonlyMap<string, { readonly packets: number }>>;
}

/** kube-proxy's names of its two counters (pkg/proxy/iptables, Kubernetes 1.36). */
const accounted = {
  kubeproxy_iptables_ct_state_invalid_dropped_packets_total: 'ct_state_invalid_dropped_pkts',
  kubeproxy_iptables_localhost_nodeports_accepted_packets_total: 'localhost_nps_accepted_pkts',
} as const;

/** The tables in kube-proxy's metrics. Chains in mangle are signs for other programs, and forward nothing. */
const counted: ReadonlySet<string> = new Set(['nat', 'filter']);

/** Number of rules, and packet counts of the named ones. */
export function ruleMetrics({ backends, packetCounts }: RuleMetricsOptions): Collector {
  return async () => [
    ruleFamily('kubeproxy_sync_proxy_rules_iptables_total', backends),
    ruleFamily('kubeproxy_sync_proxy_rules_iptables_last', backends),
    ...(await packetFamilies(packetCounts)),
  ];
}

function ruleFamily(
  name: 'kubeproxy_sync_proxy_rules_iptables_total' | 'kubeproxy_sync_proxy_rules_iptables_last',
  backends: readonly DataplaneBackend[],
): MetricFamily {
  const samples = backends.flatMap((backend) =>
    (backend.observers.ruleCounts?.() ?? [])
      .filter(({ table }) => counted.has(table))
      .map(({ table, total, last }) => [name.endsWith('last') ? last : total, backend.ipFamily, table] as const),
  );
  return collectedFamily(name, samples);
}

/** Omits counters without a rule, as kube-proxy does: a 0 would mean that nothing was dropped. */
async function packetFamilies(packetCounts: RuleMetricsOptions['packetCounts']): Promise<readonly MetricFamily[]> {
  const counts = await packetCounts().catch(() => new Map<string, { readonly packets: number }>());
  return (Object.entries(accounted) as [keyof typeof accounted, string][]).flatMap(([name, counter]) => {
    const count = counts.get(counter);
    return count === undefined ? [] : [collectedFamily(name, [[count.packets]])];
  });
}
