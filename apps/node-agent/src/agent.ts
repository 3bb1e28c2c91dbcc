import {
  type Clock,
  ClusterState,
  type ClusterStateSource,
  createReconciler,
  type DataplaneBackend,
  type EventRecorder,
  type FamilyOptions,
  type HttpListener,
  type IpAddress,
  type IpFamily,
  type Logger,
  type Metrics,
  millis,
  type ProxyHealth,
  proxyHealth,
  type Reconciler,
  seconds,
  ServiceHealth,
} from '@switchyard/core';
import { flowCleaner, type FlowHost } from './clean-flows.ts';
import type { RunConfig } from './config.ts';
import { startingEvent } from './events/agent-events.ts';
import { type AddressHost, followAddresses } from './follow-addresses.ts';
import { serveHttpEndpoints } from './http-endpoints.ts';
import { addMetrics } from './metrics/add-metrics.ts';
import type { MetricsPage } from './metrics/metrics-page.ts';
import { OwnNode } from './node/own-node.ts';
import { startConditionsOf } from './node/start-conditions.ts';
import { healthCheckAddresses, tableOptionsOf } from './node-settings.ts';

/** The machine, as far as the agent needs it. */
export interface AgentHost extends FlowHost, AddressHost {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** What /metrics says; the agent adds what only it knows. */
  readonly metricsPage: MetricsPage;
  readonly listener: HttpListener;
  readonly events: EventRecorder;
  /** What is on this machine's interfaces now, loopback excluded. */
  readonly interfaceAddresses: () => readonly IpAddress[];
  /** Called once, when the cluster was applied in every family for the first time. */
  readonly onForwarding: () => void;
}

/** What an agent is made of. One backend per IP family; the caller disposes them afterwards. */
export interface AgentParts {
  readonly config: RunConfig;
  readonly source: ClusterStateSource;
  readonly backends: readonly DataplaneBackend[];
  readonly host: AgentHost;
}

const resyncInterval = seconds(3600);
const firstRetry = seconds(1);

/** Runs the agent until aborted. Forwarding stays in the kernel, however it ends. */
export async function runAgent(parts: AgentParts, signal: AbortSignal): Promise<void> {
  const { config, source, backends, host } = parts;
  const { clock, logger, metrics, listener } = host;
  const state = new ClusterState({ nodeName: config.nodeName });
  const node = new OwnNode({ config, state, logger });
  const health = (): ProxyHealth => healthOf(reconciler, config);
  const serviceHealths = backends.map(
    ({ ipFamily }) =>
      new ServiceHealth({
        ipFamily,
        nodeName: config.nodeName,
        listener,
        addresses: () => {
          const { nodePortCidrs } = tableOptionsOf(config, node, ipFamily);
          return healthCheckAddresses(nodePortCidrs, ipFamily, host.interfaceAddresses);
        },
        isProxyLive: () => health().isLive,
        clock,
        logger,
        metrics,
        events: host.events,
      }),
  );
  const starting = new Set(backends.map(({ ipFamily }) => ipFamily));
  const noteApplied = (ipFamily: IpFamily): void => {
    if (starting.delete(ipFamily) && starting.size === 0) host.onForwarding();
  };
  const families = backends.map((backend, index): FamilyOptions => ({
    backend,
    tableOptions: () => tableOptionsOf(config, node, backend.ipFamily),
    afterApply: {
      syncHealth: async (checks) => {
        await serviceHealths[index]?.sync(checks);
        noteApplied(backend.ipFamily);
      },
      cleanStaleFlows: flowCleaner(backend.ipFamily, host),
    },
  }));
  const reconciler: Reconciler = createReconciler({
    source,
    state,
    nodeName: config.nodeName,
    families,
    startConditions: startConditionsOf(
      config,
      node,
      backends.map(({ ipFamily }) => ipFamily),
    ),
    timing: {
      minSyncPeriod: config.minSyncPeriod,
      retry: { first: millis(Math.min(firstRetry, config.syncPeriod)), max: config.syncPeriod },
      resyncInterval,
    },
    clock,
    logger,
    metrics,
    events: host.events,
  });
  host.events.record(startingEvent(config.nodeName));
  const stop = new AbortController();
  addMetrics({ config, backends, host, status: () => reconciler.status(), health }, stop.signal);
  const endpoints =
    config.healthz === undefined
      ? Promise.resolve()
      : serveHttpEndpoints({ ...config.healthz, listener, health, clock, logger, metrics }, stop.signal);
  const followNodeAddresses = async (): Promise<void> => {
    await Promise.all(serviceHealths.map((one) => one.followAddresses()));
  };
  const addresses = followAddresses(host, followNodeAddresses, stop.signal);
  try {
    await reconciler.run(signal);
  } finally {
    stop.abort();
    await endpoints;
    await addresses;
    await Promise.all(serviceHealths.map((one) => one[Symbol.asyncDispose]()));
  }
}

function healthOf(reconciler: Reconciler, config: RunConfig): ProxyHealth {
  const { families, isNodeEligible } = reconciler.status();
  return proxyHealth({ families, isNodeEligible, timeout: millis(2 * config.syncPeriod) });
}
