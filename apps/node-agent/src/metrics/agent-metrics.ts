import type { Clock, Logger, Metrics } from '@switchyard/core';
import type { DataplaneBackend, ReconcilerStatus } from '@switchyard/core/engine';
import type { ProxyHealth } from '@switchyard/core/health';
import { traitsOf } from '../backends.ts';
import type { RunConfig } from '../config/run-config.ts';
import type { MetricsPage, Collector } from './metrics-page.ts';
import { serviceMetrics } from './service-metrics.ts';
import { collectedFamily, type MetricFamily } from '@switchyard/host';
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
  const { config, backends, host, now = () => config } = agent;
  const { metricsPage, packetCounts } = host;
  const { metricSets } = traitsOf(config.mode);
  metricsPage.addCollector(() => agentFamilies(agent));
  if (metricSets.includes('rules')) metricsPage.addCollector(ruleMetrics({ backends, packetCounts }));
  if (metricSets.includes('maps')) metricsPage.addCollector(mapMetrics(backends));
  const ofServices = serviceMetrics({
    ...host,
    backends,
    signal,
    get limit() {
      const wanted = now().serviceMetrics;
      return wanted.kind === 'on' ? wanted.limit : 0;
    },
  });
  metricsPage.addCollector((asked) => (now().serviceMetrics.kind === 'on' ? ofServices(asked) : []));
}

function agentFamilies({ config, backends, status, health }: MeasuredAgent): readonly MetricFamily[] {
  const { isLive, isReady } = health();
  const { major, minor } = kubernetesVersion;
  const gitVersion = `v${major}.${minor}.0+switchyard-${version}`;
  const platform = `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`;
  const build = [1, '', 'v8', '', '', gitVersion, process.version, String(major), String(minor), platform] as const;
  return [
    collectedFamily('kubernetes_build_info', [build]),
    collectedFamily('switchyard_build_info', [[1, backends[0]?.name ?? '', process.version, version]]),
    collectedFamily(
      'kubernetes_feature_enabled',
      [...config.featureGates].map(([name, isOn]) => [isOn ? 1 : 0, name, featureStageOf(name)] as const),
    ),
    collectedFamily('switchyard_health', [
      [isReady ? 1 : 0, 'healthz'],
      [isLive ? 1 : 0, 'livez'],
    ]),
    collectedFamily(
      'switchyard_oldest_pending_change_seconds',
      [...status().families].map(([ipFamily, { pendingFor = 0 }]) => [pendingFor / 1000, ipFamily] as const),
    ),
  ];
}

/** Options of the metrics of rules, in the iptables mode. */
export interface RuleMetricsOptions {
  readonly backends: readonly DataplaneBackend[];
  /** Packets by the names of netfilter accounting. Throws if the kernel has none, or refuses access. */
  readonly packetCounts: () => Promise<ReadonlyMap<string, { readonly packets: number }>>;
}

/** kube-proxy's names of its two counters (pkg/proxy/iptables, Kubernetes 1.36). */
const accounted = [
  ['kubeproxy_iptables_ct_state_invalid_dropped_packets_total', 'ct_state_invalid_dropped_pkts'],
  ['kubeproxy_iptables_localhost_nodeports_accepted_packets_total', 'localhost_nps_accepted_pkts'],
] as const;

/** The tables in kube-proxy's metrics. Chains in mangle are signs for other programs, and forward nothing. */
const counted: ReadonlySet<string> = new Set(['nat', 'filter']);

/** Number of rules, and packet counts of the named ones. Omits counters without a rule, as kube-proxy does: a 0 would mean that nothing was dropped. */
export function ruleMetrics({ backends, packetCounts }: RuleMetricsOptions): Collector {
  const rules = (what: 'total' | 'last'): MetricFamily => {
    const samples = backends.flatMap(({ ipFamily, observers }) =>
      (observers.ruleCounts?.() ?? [])
        .filter(({ table }) => counted.has(table))
        .map((count) => [count[what], ipFamily, count.table] as const),
    );
    return collectedFamily(`kubeproxy_sync_proxy_rules_iptables_${what}`, samples);
  };
  return async () => {
    const counts = await packetCounts().catch(() => new Map<string, { readonly packets: number }>());
    const packets = accounted.flatMap(([name, counter]) => {
      const count = counts.get(counter);
      return count === undefined ? [] : [collectedFamily(name, [[count.packets]])];
    });
    return [rules('total'), rules('last'), ...packets];
  };
}

/** Capacity and entries of the maps of the eBPF mode. */
export function mapMetrics(backends: readonly DataplaneBackend[]): Collector {
  return () =>
    (['capacity', 'entries'] as const).map((what) =>
      collectedFamily(
        `switchyard_ebpf_map_${what}`,
        backends.flatMap(({ ipFamily, observers }) =>
          (observers.mapFills?.() ?? []).map((fill) => [fill[what], ipFamily, fill.map] as const),
        ),
      ),
    );
}
