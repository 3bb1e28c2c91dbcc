import {
  type ApiServerAddress,
  HostError,
  InvariantError,
  type IpFamily,
  type Millis,
  millis,
  noopEvents,
  noopLogger,
  noopMetrics,
  parseIp,
  parsePort,
} from '@switchyard/core';
import {
  ManualClock,
  MemoryHttpListener,
  MemorySource,
  RecordingBackend,
  type replaceAll,
  settle,
} from '@switchyard/core/testing';
import { runAgent } from '../agent.ts';
import { nothingRemoved } from '../cleanup/removal.ts';
import { parseConfig, type RunConfig } from '../config.ts';
import { MemoryTcpNetwork } from '../localhost-node-ports/testing/memory-tcp-network.ts';
import { noopMetricsPage } from '../metrics/testing/metrics-pages.ts';

/** Configuration of the agent of Node n1 with further flags. */
export function configOf(...args: readonly string[]): RunConfig {
  const config = parseConfig(
    ['--hostname-override=n1', '--kubeconfig=/unused', '--proxy-mode=nftables', '--metrics-bind-address=', ...args],
    {},
  );
  if (config.kind !== 'run') throw new Error('not a run');
  return config;
}

/** An agent that runs with everything around it in memory. */
export class AgentBench implements AsyncDisposable {
  readonly clock: ManualClock = new ManualClock(Date.parse('2026-11-21T10:00:00Z'));
  readonly source: MemorySource = new MemorySource();
  readonly listener: MemoryHttpListener = new MemoryHttpListener();
  readonly network: MemoryTcpNetwork = new MemoryTcpNetwork();
  readonly backends: Readonly<Record<IpFamily, RecordingBackend>>;
  readonly warnings: string[] = [];
  /** How often the agent said that the cluster is forwarded. */
  forwarding = 0;
  interfaceAddresses: readonly string[] = ['192.0.2.1', 'fd00::1', '10.0.0.1'];
  /** Address changes of the machine: a step, or a failure. */
  readonly addressEvents: (HostError | 'changed')[] = [];
  /** Addresses of the API server; `reachAt` changes them. */
  apiServers: readonly ApiServerAddress[] = [];
  /** Time since the API server was last heard. */
  silence: Millis = millis(0);
  readonly ended: Promise<void>;
  readonly #stop = new AbortController();
  #config: RunConfig;
  readonly #configListeners: (() => void)[] = [];
  #onApiServers: () => void = () => undefined;

  constructor(
    config: RunConfig,
    { during, taken = [] }: { readonly during?: () => Promise<void>; readonly taken?: readonly string[] } = {},
  ) {
    this.#config = config;
    const spec = during === undefined ? {} : { during };
    for (const place of taken) this.listener.setTaken(place, true);
    this.backends = {
      IPv4: new RecordingBackend({ ipFamily: 'IPv4', heartbeat: {}, ...spec }),
      IPv6: new RecordingBackend({ ipFamily: 'IPv6' }),
    };
    const host = {
      clock: this.clock,
      logger: { ...noopLogger, warn: (message: string) => void this.warnings.push(message) },
      metrics: noopMetrics,
      metricsPage: noopMetricsPage,
      listener: this.listener,
      loopbackProxy: {
        network: this.network,
        limits: { listeners: Infinity, connections: Infinity },
        random: () => 0,
      },
      events: noopEvents,
      interfaceAddresses: () => this.interfaceAddresses.map(parseIp),
      listenAddresses: () => ['127.0.0.1', '::1', ...this.interfaceAddresses].map(parseIp),
      removeLeftRules: async () => ({ ours: nothingRemoved, kubeProxy: nothingRemoved }),
      views: {
        configz: () => ({}),
        flagz: () => new Map(),
        setVerbosity: () => undefined,
        process: { startTime: millis(0), nodeVersion: 'v0', version: '0', commandLine: [] },
      },
      onForwarding: () => void this.forwarding++,
      onApplied: () => undefined,
      packetCounts: async () => new Map(),
      openFlowTable: () => Promise.reject(new InvariantError('there is no UDP service here')),
      addressChanges: async (signal: AbortSignal) => this.#addressChanges(signal),
    };
    const { source } = this;
    const follower = {
      current: () => this.#config,
      onChange: (listener: () => void) => void this.#configListeners.push(listener),
    };
    const contact = {
      addresses: () => this.apiServers,
      onAddresses: (listener: () => void) => void (this.#onApiServers = listener),
      silence: () => this.silence,
    };
    const backends = Object.values(this.backends);
    this.ended = runAgent({ config, follower, source, contact, backends, host }, this.#stop.signal);
    this.ended.catch(() => undefined);
  }

  async push(batch: ReturnType<typeof replaceAll>): Promise<void> {
    this.source.push(batch);
    await settle();
  }

  async *#addressChanges(signal: AbortSignal): AsyncGenerator<void, void, undefined> {
    while (!signal.aborted) {
      const event = this.addressEvents.shift();
      if (event instanceof HostError) throw event;
      if (event !== undefined) yield;
      await this.clock.sleep(millis(250), signal).catch(() => undefined);
    }
  }

  /** Another configuration from now on. */
  async reconfigure(config: RunConfig): Promise<void> {
    this.#config = config;
    for (const listener of this.#configListeners) listener();
    await settle();
  }

  /** The API server is reached at this address, too. */
  async reachAt(address: string, port: number): Promise<void> {
    this.apiServers = [...this.apiServers, { address: parseIp(address), port: parsePort(port) }];
    this.#onApiServers();
    await settle();
  }

  status(path: string): number | undefined {
    return this.listener.get('any-both:10256', path)?.status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.ended.catch(() => undefined);
  }
}
