import { type Clock, type EventRecorder, type Logger, type Metrics, runTogether } from '@switchyard/core';
import type { HttpListener, ProxyHealth } from '@switchyard/core/health';
import type { BindTarget, RunConfig } from '../config/run-config.ts';
import { failedServerEvent } from '../events/agent-events.ts';
import type { DebugState } from './debug-state.ts';
import { healthRoutes } from './health-routes.ts';
import { type EndpointViews, metricsRoutes, type MetricsRoutesOptions } from './metrics-routes.ts';
import { type Route, router } from './route.ts';
import { serve } from './serve.ts';

/** Options of both servers of the agent. */
export interface EndpointsOptions {
  readonly config: Pick<
    RunConfig,
    'nodeName' | 'mode' | 'healthz' | 'metricsServer' | 'bindAddressHardFail' | 'enableProfiling' | 'featureGates'
  >;
  readonly health: () => ProxyHealth;
  readonly metricsPage: MetricsRoutesOptions['metricsPage'];
  readonly views: EndpointViews;
  readonly debug: DebugState;
  readonly listener: HttpListener;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/**
 * Runs the health server and the metrics server until aborted. Rejects with `HostError` when one of them cannot listen
 * and `bindAddressHardFail` is set.
 */
export async function serveEndpoints(options: EndpointsOptions, signal: AbortSignal): Promise<void> {
  const { config, clock, metrics, health } = options;
  const servers: readonly EndpointServer[] = [
    {
      name: 'healthz',
      target: config.healthz,
      flag: '--healthz-bind-address',
      reason: 'FailedToStartProxierHealthcheck',
      routes: () => healthRoutes({ health, clock, metrics }),
    },
    {
      name: 'metrics',
      target: config.metricsServer,
      flag: '--metrics-bind-address',
      reason: 'FailedToStartMetricServer',
      routes: () => routesOfMetrics(options),
    },
  ];
  await runTogether(
    servers.map((server) => (running) => serveOne(options, server, running)),
    signal,
  );
}

interface EndpointServer {
  readonly name: string;
  readonly target: BindTarget | undefined;
  readonly flag: string;
  /** Of the Event on the Node when it cannot listen. */
  readonly reason: Parameters<typeof failedServerEvent>[1];
  readonly routes: () => readonly Route[];
}

async function serveOne(
  { config, listener, events, clock, logger }: EndpointsOptions,
  { name, flag, reason, target, routes }: EndpointServer,
  signal: AbortSignal,
): Promise<void> {
  if (target === undefined) return;
  const { nodeName, bindAddressHardFail: hardFail } = config;
  const onFailure = (error: Error): void => events.record(failedServerEvent(nodeName, reason, error));
  const handler = router(routes(), logger);
  await serve({ name, target, flag, handler, hardFail, onFailure, listener, clock, logger }, signal);
}

function routesOfMetrics({ config, metricsPage, views, debug, clock, logger }: EndpointsOptions): readonly Route[] {
  const { mode, enableProfiling, featureGates } = config;
  const profiler = async () => (await import('./profiler.ts')).inspectorProfiler;
  return metricsRoutes({ metricsPage, views, debug, mode, enableProfiling, featureGates, profiler, clock, logger });
}
