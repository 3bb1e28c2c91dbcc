import {
  type ApiServerAddress,
  ClusterState,
  type IpAddress,
  type IpFamily,
  type Millis,
  millis,
  seconds,
  type ServiceKey,
} from '@switchyard/core';
import { createReconciler, type FamilyOptions, type Reconciler, type ReconcileTiming } from '@switchyard/core/engine';
import { type HealthClient, type ProxyHealth, proxyHealth, ServiceHealth } from '@switchyard/core/health';
import type { AgentParts } from './agent-host.ts';
import { flowCleaner } from './clean-flows.ts';
import { countConnections } from './drain/open-connections.ts';
import type { RunConfig } from './config.ts';
import { fixedConfig } from './config/config-follower.ts';
import { configEvents, nodeWarning } from './events/agent-events.ts';
import { followAddresses } from './follow-addresses.ts';
import { familyDumpText } from './host/dump-text.ts';
import { TakeOver } from './host/take-over.ts';
import { AppliedListeners } from './http/applied-listeners.ts';
import type { DebugState } from './http/debug-state.ts';
import { serveEndpoints } from './http/endpoints.ts';
import { addMetrics } from './metrics/agent-metrics.ts';
import { loopbackProxies } from './localhost-node-ports/localhost-node-ports.ts';
import { logNotes } from './config/notes.ts';
import { nodeNotes, startConditionsOf } from './node/start-conditions.ts';
import { OwnNode } from './node/own-node.ts';
import { healthCheckAddresses, tableOptionsOf } from './node-settings.ts';

const resyncInterval = seconds(3600);
const firstRetry = seconds(1);
const noAddresses: readonly ApiServerAddress[] = [];

/**
 * Runs the agent until aborted. Rejects when the source can never recover, a backend breaks its contract, or a server
 * cannot listen although it must. Forwarding stays in the kernel, however it ends.
 */
export async function runAgent(parts: AgentParts, signal: AbortSignal): Promise<void> {
  const { config, source, contact, backends, host, follower = fixedConfig(parts.config) } = parts;
  const now = (): RunConfig => follower.current();
  const { clock, logger, metrics, events } = host;
  const { nodeName } = config;
  const state = new ClusterState({ nodeName });
  const node = new OwnNode({ config, state, logger });
  const health = (): ProxyHealth => {
    const { families, isNodeEligible } = reconciler.status();
    return proxyHealth({ families, isNodeEligible, timeout: millis(2 * now().syncPeriod) });
  };
  const serviceHealths = serviceHealthsOf(parts, { node, now, isProxyLive: () => health().isLive });
  await using takeOver = new TakeOver({ nodeName, removeRules: host.removeLeftRules, clock, logger, events });
  const ipFamilies = backends.map(({ ipFamily }) => ipFamily);
  await using proxies = loopbackProxies({ nodeName, ipFamilies, host });
  const missing = new Set(ipFamilies);
  const applied = new AppliedListeners();
  applied.add(host.onApplied);
  const noteForwarding = (ipFamily: IpFamily): void => {
    if (!missing.delete(ipFamily) || missing.size > 0) return;
    logNotes(nodeNotes(config, node, ipFamilies), logger);
    host.onForwarding();
  };
  const families = backends.map((backend, index): FamilyOptions => ({
    backend,
    tableOptions: () => ({
      ...tableOptionsOf(now(), node, backend.ipFamily),
      apiServers: contact?.addresses() ?? noAddresses,
    }),
    afterApply: {
      syncHealth: async (checks) => {
        applied.notify();
        await serviceHealths[index]?.sync(checks);
        await proxies.followApplied(backend.ipFamily, reconciler);
        noteForwarding(backend.ipFamily);
        takeOver.noteApplied(reconciler.status());
      },
      cleanStaleFlows: flowCleaner(backend.ipFamily, host),
    },
  }));
  const startConditions = startConditionsOf(config, node, ipFamilies);
  const shared = { source, state, nodeName, families, startConditions, clock, logger, metrics, events };
  const sourceSilence = contact?.silence ?? ((): Millis => millis(0));
  const reconciler: Reconciler = createReconciler({ ...shared, timing: timingOf(now), sourceSilence });
  follower.onChange(() => reconciler.rebuild('the configuration changed'));
  contact?.onAddresses(() => {
    if (state.isInSync) reconciler.rebuild('the API server is reached at another address');
  });
  events.record({ ...nodeWarning(nodeName, 'Starting', ''), type: 'Normal' }); // as kube-proxy does
  for (const event of configEvents(nodeName, config.notes)) events.record(event);
  const stop = new AbortController();
  addMetrics({ config, now, backends, host, status: () => reconciler.status(), health }, stop.signal);
  const debug = debugState(parts, { node, reconciler, applied });
  const healthClients = (service: ServiceKey): readonly HealthClient[] | undefined => {
    const known = serviceHealths.map((one) => one.clientsOf(service)).filter((one) => one !== undefined);
    return known.length === 0 ? undefined : known.flat();
  };
  const drain = config.drainGate ? { ...debug, healthClients, countConnections } : undefined;
  const endpoints = serveEndpoints({ config, health, debug, drain, ...host }, stop.signal);
  endpoints.catch((error: unknown) => stop.abort(error)); // told below
  const followNodeAddresses = () => Promise.all(serviceHealths.map((one) => one.followAddresses()));
  const addresses = followAddresses(host, followNodeAddresses, stop.signal);
  try {
    await reconciler.run(AbortSignal.any([signal, stop.signal]));
  } finally {
    stop.abort();
    await addresses;
    await Promise.all(serviceHealths.map((one) => one[Symbol.asyncDispose]()));
    await endpoints;
  }
}

/** Periods may change while the agent runs. */
function timingOf(now: () => RunConfig): ReconcileTiming {
  return {
    get minSyncPeriod() {
      return now().minSyncPeriod;
    },
    get retry() {
      const { syncPeriod } = now();
      return { first: millis(Math.min(firstRetry, syncPeriod)), max: syncPeriod };
    },
    resyncInterval,
  };
}

function serviceHealthsOf(
  { config, backends, host }: AgentParts,
  { node, now, isProxyLive }: { node: OwnNode; now: () => RunConfig; isProxyLive: () => boolean },
): readonly ServiceHealth[] {
  const { listener, clock, logger, metrics, events } = host;
  return backends.map(({ ipFamily }) => {
    const addresses = (): readonly (IpAddress | 'any')[] => {
      const { nodePortCidrs } = tableOptionsOf(now(), node, ipFamily);
      return healthCheckAddresses(nodePortCidrs, ipFamily, host.listenAddresses);
    };
    const { nodeName } = config;
    return new ServiceHealth({ ipFamily, nodeName, listener, addresses, isProxyLive, clock, logger, metrics, events });
  });
}

interface DebuggedParts {
  readonly node: OwnNode;
  readonly reconciler: Reconciler;
  readonly applied: AppliedListeners;
}

function debugState({ config, backends, host }: AgentParts, { node, reconciler, applied }: DebuggedParts): DebugState {
  return {
    nodeName: config.nodeName,
    mode: config.mode,
    socketLb: config.ebpf.socketLb,
    ipFamilies: backends.map(({ ipFamily }) => ipFamily),
    tables: () => reconciler.tables(),
    status: () => reconciler.status(),
    onApplied: (listener) => applied.add(listener),
    interfaceAddresses: host.interfaceAddresses,
    proxyLag: millis(0),
    podCidrs: () => node.podCidrs,
    dumps: backends.map((backend) => (signal) => familyDumpText(backend, signal)),
    serviceCounters: (signal) => Promise.all(backends.flatMap(({ observers }) => observers.counters?.(signal) ?? [])),
    now: () => host.clock.now(),
    clock: host.clock,
  };
}
