import type { Clock, EventRecorder, IpFamily, Logger, Metrics, NodeName, Random } from '@switchyard/core';
import type { Reconciler } from '@switchyard/core/engine';
import type { ProxyLimits } from '../host/descriptors.ts';
import { Connections } from './connections.ts';
import { LocalhostNodePorts } from './localhost-node-ports.ts';
import type { TcpNetwork } from './tcp-network.ts';

/** TCP and limits of the loopback proxy. */
export interface LoopbackProxyHost {
  readonly network: TcpNetwork;
  readonly limits: ProxyLimits;
  readonly random: Random;
}

/** Options of the loopback proxies of a node. */
export interface LoopbackProxiesOptions {
  readonly nodeName: NodeName;
  readonly ipFamilies: readonly IpFamily[];
  readonly host: {
    readonly loopbackProxy: LoopbackProxyHost;
    readonly clock: Clock;
    readonly logger: Logger;
    readonly metrics: Metrics;
    readonly events: EventRecorder;
  };
}

/** The loopback proxies of all families. */
export interface LoopbackProxies extends AsyncDisposable {
  /** Follows the applied table of a family. Call it after each apply. */
  followApplied(ipFamily: IpFamily, reconciler: Pick<Reconciler, 'tables' | 'status'>): Promise<void>;
}

/** Proxies that do not listen before the first apply. Disposing closes their listeners and connections. */
export function loopbackProxies({ nodeName, ipFamilies, host }: LoopbackProxiesOptions): LoopbackProxies {
  const { clock, logger, metrics, events } = host;
  const { network, limits, random } = host.loopbackProxy;
  const connections = new Connections({ network, limit: limits.connections, clock, logger });
  const shared = { nodeName, network, connections, limit: limits.listeners, clock, random, logger, metrics, events };
  const byFamily = new Map(
    ipFamilies.map((ipFamily) => [ipFamily, new LocalhostNodePorts({ ...shared, ipFamily })] as const),
  );
  return {
    async followApplied(ipFamily, reconciler) {
      const table = reconciler.tables().get(ipFamily);
      const failed = reconciler.status().families.get(ipFamily)?.failedServices ?? new Map();
      if (table !== undefined) await byFamily.get(ipFamily)?.sync({ table, failed });
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...byFamily.values()].map((one) => one[Symbol.asyncDispose]()));
      await connections[Symbol.asyncDispose]();
    },
  };
}
