import type { DataplaneBackend } from '@switchyard/core/engine';
import { collectedFamily, type MetricFamily } from '@switchyard/host';
import type { Collector } from './metrics-page.ts';

/** What rules say of themselves, in the iptables mode. */
export interface RuleMetricsOptions {
  readonly backends: readonly DataplaneBackend[];
  /** Packets by the names of netfilter accounting. Throws where the kernel has none, or is not ours to ask. */
  readonly packetCounts: () => Promise<ReadonlyMap<string, { readonly packets: number }>>;
}

/** kube-proxy's names of its two counters (pkg/proxy/iptables, Kubernetes 1.36). */
const accounted = {
  kubeproxy_iptables_ct_state_invalid_dropped_packets_total: 'ct_state_invalid_dropped_pkts',
  kubeproxy_iptables_localhost_nodeports_accepted_packets_total: 'localhost_nps_accepted_pkts',
} as const;

/** The tables that kube-proxy's metrics know: what stands in mangle is for others to find, and forwards nothing. */
const counted: ReadonlySet<string> = new Set(['nat', 'filter']);

/** How many rules there are, and what those with a name of their own have counted. */
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

/** A counter that no rule has is not there, as in kube-proxy: a 0 would say that nothing was dropped. */
async function packetFamilies(packetCounts: RuleMetricsOptions['packetCounts']): Promise<readonly MetricFamily[]> {
  const counts = await packetCounts().catch(() => new Map<string, { readonly packets: number }>());
  return (Object.entries(accounted) as [keyof typeof accounted, string][]).flatMap(([name, counter]) => {
    const count = counts.get(counter);
    return count === undefined ? [] : [collectedFamily(name, [[count.packets]])];
  });
}
