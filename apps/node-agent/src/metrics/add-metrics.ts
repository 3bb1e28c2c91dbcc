import type { Clock, DataplaneBackend, Logger, Metrics, ProxyHealth, ReconcilerStatus } from '@switchyard/core';
import type { RunConfig } from '../config/run-config.ts';
import { addAgentCollectors } from './agent-collectors.ts';
import type { MetricsPage } from './metrics-page.ts';
import { serviceMetrics } from './service-metrics.ts';

/** A running agent, as far as its metrics need it. */
export interface MeasuredAgent {
  readonly config: Pick<RunConfig, 'featureGates' | 'serviceMetrics'>;
  readonly backends: readonly DataplaneBackend[];
  readonly host: {
    readonly clock: Clock;
    readonly logger: Logger;
    readonly metrics: Metrics;
    readonly metricsPage: MetricsPage;
  };
  readonly status: () => ReconcilerStatus;
  readonly health: () => ProxyHealth;
}

/** Adds to the pages what is worked out when they are asked for. `signal`: the agent stops. */
export function addMetrics({ config, backends, host, status, health }: MeasuredAgent, signal: AbortSignal): void {
  const { featureGates, serviceMetrics: wanted } = config;
  addAgentCollectors(host.metricsPage, { backend: backends[0]?.name ?? '', featureGates, status, health });
  if (wanted.kind === 'on') {
    host.metricsPage.addCollector(serviceMetrics({ ...host, backends, limit: wanted.limit, signal }));
  }
}
