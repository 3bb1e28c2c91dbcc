import {
  type BackOff,
  type Clock,
  diffTables,
  type EventRecorder,
  type ForwardingTable,
  HostError,
  type IpFamily,
  isExpected,
  type Logger,
  loopbackAddress,
  loopbackNodePort,
  type LoopbackNodePort,
  messageOf,
  type Metrics,
  newBackOff,
  type NodeName,
  type Port,
  type Random,
  seconds,
  type ServicePortKey,
  servicePortParts,
  serviceSubject,
} from '@switchyard/core';
import { Connections, type TcpListener, type TcpNetwork } from './connections.ts';
import { EndpointChoice } from './endpoint-choice.ts';
import type { Reconciler } from '@switchyard/core/engine';
import type { ProxyLimits } from '../host/descriptors.ts';

interface LocalhostNodePortsOptions {
  readonly ipFamily: IpFamily;
  readonly nodeName: NodeName;
  readonly network: Pick<TcpNetwork, 'listen'>;
  readonly connections: Pick<Connections, 'accept'>;
  /** Maximum number of listeners, each a descriptor. */
  readonly limit: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly events: EventRecorder;
}

/** The kernel's state: `table` without the failed Services. */
interface AppliedTable {
  readonly table: ForwardingTable;
  readonly failed: ReadonlyMap<ServicePortKey, unknown>;
}

/** One NodePort that is served, or will be when its port is free. */
interface Served {
  nodePort: LoopbackNodePort;
  readonly choice: EndpointChoice;
  listener: TcpListener | undefined;
  hasFailed: boolean;
}

const retryBounds = { first: seconds(1), max: seconds(30) };

/**
 * NodePorts on the loopback address of one family, for TCP (KEP-6032): a listener for each NodePort with endpoints, if the table
 * selects the proxy. Follows tables after they were applied; a failed Service keeps its listener. `Connections` owns connections.
 *
 * An unavailable port affects only its own NodePort: a warning and an Event on the Service at the first failure, then retries
 * with growing intervals of up to half a minute.
 */
export class LocalhostNodePorts implements AsyncDisposable {
  readonly #options: LocalhostNodePortsOptions;
  readonly #backOff: BackOff;
  /** The newest table, if it selects the proxy; otherwise undefined. */
  #table: ForwardingTable | undefined;
  /** As applied. */
  readonly #nodePorts = new Map<ServicePortKey, LoopbackNodePort>();
  /** Service ports that failed, to compare again after the next apply. */
  #failed: ReadonlySet<ServicePortKey> = new Set();
  readonly #served = new Map<Port, Served>();
  #listening = 0;
  readonly #stop = new AbortController();
  /** Queue of the tasks that open or close listeners. */
  #work: Promise<void> = Promise.resolve();
  #retry: Promise<void> | undefined;

  constructor(options: LocalhostNodePortsOptions) {
    this.#options = options;
    this.#backOff = newBackOff(retryBounds, options.random);
  }

  /** Opens and closes listeners for the applied table. Resolves when every listener is open or has failed. */
  sync(applied: AppliedTable): Promise<void> {
    return this.#enqueue(async () => {
      if (!this.#note(applied)) return;
      const wanted = new Map([...this.#nodePorts.values()].map((one) => [one.port, one]));
      for (const [port, served] of this.#served) if (!wanted.has(port)) this.#close(port, served);
      for (const nodePort of wanted.values()) this.#want(nodePort);
      await this.#open(({ hasFailed }) => !hasFailed);
    });
  }

  /** Closes all listeners. Connections stay. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#retry;
    await this.#enqueue(async () => {
      for (const [port, served] of this.#served) this.#close(port, served);
      this.#gauge();
    });
  }

  #enqueue(task: () => Promise<void>): Promise<void> {
    const result = this.#work.then(task);
    this.#work = result.catch(() => undefined); // the caller sees the failure; the next task must still run
    return result;
  }

  /** Returns whether anything may have changed. Takes time proportional to the change while the table selects the proxy. */
  #note({ table, failed }: AppliedTable): boolean {
    const isAsked = table.nodePortsOnLoopback === 'proxy';
    const before = this.#table;
    this.#table = isAsked ? table : undefined;
    if (!isAsked) {
      const hadAny = this.#nodePorts.size > 0;
      this.#nodePorts.clear();
      this.#failed = new Set();
      return hadAny;
    }
    const { upserted, removed } = diffTables(before, table);
    const changed = new Set([...upserted.map(({ key }) => key), ...removed, ...this.#failed]);
    this.#failed = new Set([...changed].filter((key) => failed.has(key)));
    for (const key of changed) {
      if (this.#failed.has(key)) continue;
      const service = table.services.get(key);
      const nodePort = service && loopbackNodePort(service);
      if (nodePort === undefined) this.#nodePorts.delete(key);
      else this.#nodePorts.set(key, nodePort);
    }
    return changed.size > 0;
  }

  /** Adds or updates a NodePort. Its listener stays if only its endpoints changed. */
  #want(nodePort: LoopbackNodePort): void {
    const served = this.#served.get(nodePort.port);
    if (served === undefined) {
      const choice = new EndpointChoice(nodePort, this.#options);
      this.#served.set(nodePort.port, { nodePort, choice, listener: undefined, hasFailed: false });
    } else if (served.nodePort !== nodePort) {
      served.nodePort = nodePort;
      served.choice.update(nodePort);
    }
  }

  #close(port: Port, { nodePort: { service }, listener }: Served): void {
    this.#served.delete(port);
    if (listener === undefined) return;
    listener.close();
    this.#listening--;
    const { logger, ipFamily } = this.#options;
    logger.debug('NodePort on loopback closed', { service, port, ipFamily });
  }

  async #open(isMeant: (served: Served) => boolean): Promise<void> {
    for (const served of this.#served.values()) {
      if (served.listener !== undefined || !isMeant(served)) continue;
      this.#report(served, await this.#listen(served));
    }
    this.#gauge();
    if (this.#listening < this.#served.size) this.#retryLater();
    else this.#backOff.reset();
  }

  /** Opens a listener; returns the error if that fails. */
  async #listen(served: Served): Promise<Error | undefined> {
    const { ipFamily, network, connections, limit } = this.#options;
    const { nodePort, choice } = served;
    try {
      if (this.#listening >= limit)
        throw new HostError('host.listen', `the limit of open files allows ${limit} NodePorts on loopback`);
      const place = { address: loopbackAddress(ipFamily), port: nodePort.port };
      served.listener = await network.listen(place, (client) => connections.accept(client, choice));
      this.#listening++;
      return undefined;
    } catch (error) {
      if (!isExpected(error)) throw error;
      return error;
    }
  }

  #gauge(): void {
    const { metrics, ipFamily } = this.#options;
    metrics.set('kubeproxy_nftables_localhost_nodeport_listeners', { ip_family: ipFamily }, this.#listening);
  }

  #report(served: Served, error: Error | undefined): void {
    const { logger, metrics, ipFamily, nodeName, events } = this.#options;
    const { service, port } = served.nodePort;
    const at = { service, port, ipFamily };
    if (error !== undefined) {
      metrics.add('kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total', { ip_family: ipFamily });
    }
    const hadFailed = served.hasFailed;
    served.hasFailed = error !== undefined;
    if (error === undefined) {
      if (hadFailed) logger.info('NodePort on loopback listens after all', at);
      else logger.debug('NodePort on loopback listens', at);
    } else if (!hadFailed) {
      logger.warn('NodePort on loopback cannot listen, will retry', { ...at, error });
      events.record({
        type: 'Warning',
        reason: 'FailedToListenOnLoopback',
        action: 'Listen',
        regarding: serviceSubject(servicePortParts(service)),
        note: `node ${nodeName} does not serve NodePort ${port} on its loopback address, will retry: ${messageOf(error)}`,
      });
    }
  }

  #retryLater(): void {
    if (this.#retry !== undefined || this.#stop.signal.aborted) return;
    this.#retry = this.#options.clock.sleep(this.#backOff.next(), this.#stop.signal).then(
      () => {
        this.#retry = undefined;
        return this.#enqueue(() => this.#open(() => true));
      },
      () => undefined, // disposed
    );
  }
}

/** TCP and limits of the loopback proxy. */
export interface LoopbackProxyHost {
  readonly network: TcpNetwork;
  readonly limits: ProxyLimits;
  readonly random: Random;
}

interface LoopbackProxiesOptions {
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

interface LoopbackProxies extends AsyncDisposable {
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
