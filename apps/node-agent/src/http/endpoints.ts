import {
  type Clock,
  type EventRecorder,
  type Logger,
  type Metrics,
  runTogether,
  aborted,
  HostError,
  ipFamilyOf,
  messageOf,
  seconds,
} from '@switchyard/core';
import type { HttpListener, ProxyHealth, ListenTarget } from '@switchyard/core/health';
import type { BindTarget, RunConfig } from '../config/run-config.ts';
import { nodeWarning } from '../events/agent-events.ts';
import { drainRoutes, type DrainState } from '../drain/drain-routes.ts';
import type { DebugState } from './debug-state.ts';
import { healthRoutes } from './health-routes.ts';
import { type EndpointViews, metricsRoutes, type MetricsRoutesOptions } from './metrics-routes.ts';
import { type Route, router } from './route.ts';

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
  /** Undefined: no drain gate is answered. */
  readonly drain?: DrainState | undefined;
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
  const { config, clock, metrics, health, drain } = options;
  const profiler = async () => (await import('./profiler.ts')).inspectorProfiler;
  const servers: readonly EndpointServer[] = [
    {
      name: 'healthz',
      target: config.healthz,
      flag: '--healthz-bind-address',
      reason: 'FailedToStartProxierHealthcheck',
      routes: () => [...healthRoutes({ health, clock, metrics }), ...(drain === undefined ? [] : drainRoutes(drain))],
    },
    {
      name: 'metrics',
      target: config.metricsServer,
      flag: '--metrics-bind-address',
      reason: 'FailedToStartMetricServer',
      routes: () => metricsRoutes({ ...options, ...config, profiler }),
    },
  ];
  await runTogether(
    servers.map((server) => (running) => serve(options, server, running)),
    signal,
  );
}

interface EndpointServer {
  readonly name: string;
  readonly target: BindTarget | undefined;
  readonly flag: string;
  /** Of the Event on the Node when it cannot listen. */
  readonly reason: string;
  readonly routes: () => readonly Route[];
}

/**
 * Serves until aborted. If the port is unavailable, it retries every five seconds, without effect on the dataplane, or rejects
 * with `HostError` if `bindAddressHardFail` is set.
 */
async function serve(
  { config, listener, events, clock, logger }: EndpointsOptions,
  { name, flag, reason, target, routes }: EndpointServer,
  signal: AbortSignal,
): Promise<void> {
  if (target === undefined) return;
  const handler = router(routes(), logger);
  let hasFailed = false;
  while (!signal.aborted) {
    try {
      await using _ = await listener.listen(listenTarget(target), handler);
      logger.info(`${name} listens`, { address: target.address, port: target.port });
      await aborted(signal);
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      if (!hasFailed) events.record(nodeWarning(config.nodeName, reason, messageOf(error)));
      if (config.bindAddressHardFail) {
        const message = `the ${name} server ${error.message}, and bindAddressHardFail is set: free the port or give another ${flag}`;
        throw new HostError('host.hardFail', message, { cause: error });
      }
      if (!hasFailed) logger.warn(`${name} cannot listen, will retry`, { error, ...adviceFor(error, flag) });
      hasFailed = true;
      await clock.sleep(retryInterval, signal).catch(() => undefined); // the loop sees the abort
    }
  }
}

const retryInterval = seconds(5);

/** As in Go, the unspecified address means all addresses of both families. */
export function listenTarget({ address, port }: BindTarget): ListenTarget {
  const isAny = address === '0.0.0.0' || address === '::';
  return isAny ? { ipFamily: 'both', address: 'any', port } : { ipFamily: ipFamilyOf(address), address, port };
}

/** kube-proxy is the likely owner of its own ports; if it runs, it overwrites the agent's rules. */
function adviceFor({ message }: HostError, flag: string): { readonly advice?: string } {
  if (!message.includes('address already in use')) return {};
  return {
    advice: `another program uses the port: if kube-proxy still runs on this node, stop it, because it restores its rules; otherwise set another ${flag}`,
  };
}
