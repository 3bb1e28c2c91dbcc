import type { Clock, Logger, Metrics } from '@switchyard/core';
import type { DataplaneBackend, ReconcilerStatus } from '@switchyard/core/engine';
import type { ProxyHealth } from '@switchyard/core/health';
import { traitsOf } from '../backends.ts';
import type { RunConfig } from '../config/run-config.ts';
import { addAgentCollectors } from './agent-collectors.ts';
import { mapMetrics } from './map-metrics.ts';
import type { MetricsPage } from './metrics-page.ts';
import { ruleMetrics, type RuleMetricsOptions } from './rule-metrics.ts';
import { serviceMetrics } from './service-metrics.ts';

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
