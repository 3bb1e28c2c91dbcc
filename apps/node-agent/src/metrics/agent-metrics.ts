import type { Clock, Logger, Metrics } from '@switchyard/core';
import type { DataplaneBackend, ReconcilerStatus } from '@switchyard/core/engine';
import type { ProxyHealth } from '@switchyard/core/health';
import { traitsOf } from '../backends.ts';
import type { RunConfig } from '../config/run-config.ts';
import type { MetricsPage, Collector } from './metrics-page.ts';
import { serviceMetrics } from './service-metrics.ts';
import { collectedFamily, type CollectedSample, type MetricFamily } from '@switchyard/host';
import { featureStageOf } from '../config/feature-gates.ts';
import { kubernetesVersion } from '../config/kubernetes-version.ts';
import { version } from '../version.ts';

/** Access to a running agent for its metrics. */
export interface MeasuredAgent {
  readonly config: Pick<RunConfig, 'mode' | 'featureGates' | 'serviceMetrics'>;
  /** The current configuration. Default: always `config`. */
  readonly now?: () => Pick<RunConfig, 'serviceMetrics'>;
  readonly backends: readonly DataplaneBackend[];
  readonly host: {
    readonly clock: Clock;
    readonly logger: Logger;
    readonly metrics: Metrics;
    readonly metricsPage: MetricsPage;
    readonly packetCounts: RuleMetricsOptions['packetCounts'];
  };
  readonly status: () => ReconcilerStatus;
  readonly health: () => ProxyHealth;
}

/** Adds the metrics that are computed at each scrape. `signal`: the agent stops. */
export function addMetrics(agent: MeasuredAgent, signal: AbortSignal): void {
  const { config, backends, host, status, health, now = () => config } = agent;
  const { mode, featureGates } = config;
  const { metricSets } = traitsOf(mode);
  addAgentCollectors(host.metricsPage, { backend: backends[0]?.name ?? '', featureGates, status, health });
  if (metricSets.includes('rules')) {
    host.metricsPage.addCollector(ruleMetrics({ backends, packetCounts: host.packetCounts }));
  }
  if (metricSets.includes('maps')) host.metricsPage.addCollector(mapMetrics(backends));
  const ofServices = serviceMetrics({
    ...host,
    backends,
    signal,
    get limit() {
      const wanted = now().serviceMetrics;
      return wanted.kind === 'on' ? wanted.limit : 0;
    },
  });
  host.metricsPage.addCollector((asked) => (now().serviceMetrics.kind === 'on' ? ofServices(asked) : []));
}

interface AgentView {
  readonly backend: string;
  readonly featureGates: ReadonlyMap<string, boolean>;
  readonly status: () => Pick<ReconcilerStatus, 'families'>;
  readonly health: () => ProxyHealth;
}

function addAgentCollectors(page: MetricsPage, view: AgentView): void {
  page.addCollector(() => [
    buildInfo(),
    collectedFamily('switchyard_build_info', [[1, view.backend, process.version, version]]),
    collectedFamily('kubernetes_feature_enabled', [...view.featureGates].map(featureSample)),
    healthFamily(view.health()),
    pendingFamily(view.status()),
  ]);
}

function buildInfo(): MetricFamily {
  const { major, minor } = kubernetesVersion;
  const gitVersion = `v${major}.${minor}.0+switchyard-${version}`;
  const platform = `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`;
  return collectedFamily('kubernetes_build_info', [
    [1, '', 'v8', '', '', gitVersion, process.version, String(major), String(minor), platform],
  ]);
}

/** General availability has an empty stage. */
function featureSample([name, isOn]: readonly [string, boolean]): CollectedSample {
  return [isOn ? 1 : 0, name, featureStageOf(name)];
}

function healthFamily({ isLive, isReady }: ProxyHealth): MetricFamily {
  return collectedFamily('switchyard_health', [
    [isReady ? 1 : 0, 'healthz'],
    [isLive ? 1 : 0, 'livez'],
  ]);
}

function pendingFamily({ families }: Pick<ReconcilerStatus, 'families'>): MetricFamily {
  return collectedFamily(
    'switchyard_oldest_pending_change_seconds',
    [...families].map(([ipFamily, { pendingFor = 0 }]) => [pendingFor / 1000, ipFamily] as const),
  );
}

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

/** Capacity and entries of the maps of the eBPF mode. */
export function mapMetrics(backends: readonly DataplaneBackend[]): Collector {
  return () => [
    family('switchyard_ebpf_map_capacity', backends, 'capacity'),
    family('switchyard_ebpf_map_entries', backends, 'entries'),
  ];
}

function family(
  name: 'switchyard_ebpf_map_capacity' | 'switchyard_ebpf_map_entries',
  backends: readonly DataplaneBackend[],
  what: 'capacity' | 'entries',
): MetricFamily {
  return collectedFamily(
    name,
    backends.flatMap((backend) =>
      (backend.observers.mapFills?.() ?? []).map((fill) => [fill[what], backend.ipFamily, fill.map] as const),
    ),
  );
}
