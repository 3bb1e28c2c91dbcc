import { createHttpListener, proxyHealth } from '@switchyard/core/health';
import {
  ClusterState,
  type IpFamily,
  type Millis,
  millis,
  parseIp,
  type Port,
  type Random,
  seconds,
  systemClock,
} from '@switchyard/core';
import {
  type BackendCapabilities,
  createReconciler,
  type DataplaneBackend,
  type Reconciler,
} from '@switchyard/core/engine';
import { type LeveledLogger, logLevelOf, nodeAddresses, preferLittleMemory, preferQuickStart } from '@switchyard/host';
import { openProxyChoices } from '@switchyard/netfilter';
import type { RunConfig } from './config.ts';
import type { BindTarget } from './config/run-config.ts';
import { configzDocument, flagzValues } from './config/documents.ts';
import { AppliedListeners } from './http/applied-listeners.ts';
import type { DebugState } from './http/debug-state.ts';
import { serveEndpoints } from './http/endpoints.ts';
import { createMetricsPage } from './metrics/metrics-page.ts';
import { OwnNode } from './node/own-node.ts';
import { tableOptionsOf } from './node-settings.ts';
import { openSource } from './open-source.ts';
import type { DrainState } from './drain/drain-routes.ts';
import { countConnections } from './drain/open-connections.ts';
import { version } from './version.ts';

/** An observer's configuration and machine. */
export interface ObserverOptions {
  readonly config: RunConfig;
  readonly ipFamilies: readonly IpFamily[];
  readonly logger: LeveledLogger;
  /** Wall clock at the start of the process. */
  readonly startTime: Millis;
  readonly random: Random;
}

/**
 * Runs until aborted beside the node's own proxy: builds the tables that this proxy should have, from the same configuration, and
 * serves the debugging endpoints. It programs nothing, and takes no port of the proxy. Rejects as `runAgent`.
 */
export async function runObserver(
  { config, ipFamilies, logger, startTime, random }: ObserverOptions,
  signal: AbortSignal,
): Promise<void> {
  const { nodeName, mode } = config;
  const metricsPage = createMetricsPage({ mode, ipFamilies, clock: systemClock });
  const { metrics } = metricsPage;
  const opened = await openSource(config.source, {
    nodeName,
    clock: systemClock,
    random,
    logger,
    metricsPage,
  });
  await using events = opened.events;
  preferQuickStart();
  const state = new ClusterState({ nodeName });
  const node = new OwnNode({ config, state, logger });
  const applied = new AppliedListeners();
  const removeListener = applied.add(() => {
    removeListener();
    preferLittleMemory();
  });
  const reconciler = createReconciler({
    source: opened.source,
    state,
    nodeName,
    families: ipFamilies.map((ipFamily) => ({
      backend: new ObservedFamily(ipFamily),
      tableOptions: () => tableOptionsOf(config, node, ipFamily),
      afterApply: { syncHealth: async () => applied.notify(), cleanStaleFlows: async () => millis(0) },
    })),
    timing: {
      minSyncPeriod: undefined,
      retry: { first: seconds(1), max: config.syncPeriod },
      resyncInterval: seconds(3600),
    },
    clock: systemClock,
    logger,
    metrics,
  });
  const metricsServer = observedFrom(config);
  const debug = debugState({ config, ipFamilies, node, reconciler, applied });
  const endpoints = {
    config: { ...config, healthz: config.drainGate ? healthOf(config) : undefined, metricsServer },
    health: () => proxyHealth({ ...reconciler.status(), timeout: millis(2 * config.syncPeriod) }),
    metricsPage,
    views: {
      configz: () => configzDocument(config.settings),
      flagz: () => flagzValues(config.flags, config.settings),
      setVerbosity: (verbosity: number) => logger.setLevel(logLevelOf(verbosity)),
      process: { startTime, nodeVersion: process.version, version, commandLine: process.argv },
    },
    debug,
    drain: config.drainGate ? drainState(debug) : undefined,
    listener: createHttpListener(),
    events,
    clock: systemClock,
    logger,
    metrics,
  };
  logger.info('observing: nothing is programmed', {
    version,
    pid: process.pid,
    mode,
    nodeName,
    from: opened.from,
    ...metricsServer,
  });
  const stop = new AbortController();
  const serving = serveEndpoints(endpoints, stop.signal);
  serving.catch((error: unknown) => stop.abort(error)); // reported below
  try {
    await reconciler.run(AbortSignal.any([signal, stop.signal]));
  } finally {
    stop.abort();
    await serving;
  }
}

interface ObservedParts extends Pick<ObserverOptions, 'config' | 'ipFamilies'> {
  readonly node: OwnNode;
  readonly reconciler: Reconciler;
  readonly applied: AppliedListeners;
}

function debugState({ config, ipFamilies, node, reconciler, applied }: ObservedParts): DebugState {
  return {
    nodeName: config.nodeName,
    mode: config.mode,
    socketLb: config.ebpf.socketLb,
    ipFamilies,
    tables: () => reconciler.tables(),
    status: () => reconciler.status(),
    onApplied: (listener) => applied.add(listener),
    interfaceAddresses: () => nodeAddresses(),
    proxyLag: kubeProxyLag,
    podCidrs: () => node.podCidrs,
    dumps: [],
    serviceCounters: async () => [],
    now: () => systemClock.now(),
    clock: systemClock,
  };
}

/** The proxy has the node's health checks, and its rules acknowledge a change. */
function drainState(debug: DebugState): DrainState {
  const openChoices: DrainState['openChoices'] = (ipFamily) => openProxyChoices(ipFamily);
  return { ...debug, healthClients: () => undefined, countConnections, openChoices };
}

/** kube-proxy waits a second between two syncs, each of which may take as long (docs/figures.md). */
const kubeProxyLag = seconds(3);

/** kube-proxy has 10249 and 10256 of the node, and its file may name other addresses: only a flag counts. */
function observedFrom({ flags, metricsServer }: RunConfig): BindTarget | undefined {
  const own = { address: parseIp('127.0.0.1'), port: 10_239 as Port }; // a valid port
  return flags.get('metrics-bind-address') === undefined ? own : metricsServer;
}

/** Where a drain gate reaches it: see `observedFrom`. */
function healthOf({ flags, healthz }: RunConfig): BindTarget | undefined {
  const own = { address: healthz?.address ?? parseIp('0.0.0.0'), port: 10_238 as Port }; // a valid port
  return flags.get('healthz-bind-address') === undefined ? own : healthz;
}

const capabilities: BackendCapabilities = {
  usesKernelConntrack: false,
  sessionAffinity: true,
  sourceRanges: true,
  minSyncPeriod: millis(100),
};

/** Takes every table and writes nothing. */
class ObservedFamily implements DataplaneBackend {
  readonly name = 'observer';
  readonly capabilities = capabilities;
  readonly observers = {};
  readonly ipFamily: IpFamily;

  constructor(ipFamily: IpFamily) {
    this.ipFamily = ipFamily;
  }

  async apply() {
    return { status: 'applied', writes: 0 } as const;
  }

  async cleanup(): Promise<readonly string[]> {
    return [];
  }

  async dump(): Promise<string> {
    return '';
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
