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

/** A running agent, as far as its metrics need it. */
export interface MeasuredAgent {
  readonly config: Pick<RunConfig, 'mode' | 'featureGates' | 'serviceMetrics'>;
  /** The configuration as it is later. Default: always `config`. */
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

/** Adds to the pages what is worked out when they are asked for. `signal`: the agent stops. */
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
