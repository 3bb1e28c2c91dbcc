import { millis, parseIp, seconds, systemClock } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  type AgentOptions,
  createProber,
  type LabCluster,
  type LabHost,
  type LabNode,
  type LabPod,
  type LabProcess,
  type Prober,
  startCluster,
  startEchoServer,
  startLoad,
  waitForAgents,
} from '@switchyard/lab';
import { expect } from 'vitest';

/** The pods that can serve: `a` and `b` on node1, `c` and `d` on node2. They run until the end. */
export type PodName = 'a' | 'b' | 'c' | 'd';

/** Two nodes with agents, four pods behind one Service, and clients of its cluster IP, node port and load-balancer IP. */
export interface FaultLab extends AsyncDisposable {
  readonly cluster: LabCluster;
  readonly nodes: readonly [LabNode, LabNode];
  /** The present agents, in the order of the nodes. */
  readonly agents: readonly [LabProcess, LabProcess];
  /** From a pod of node1. */
  readonly prober: Prober;
  readonly clusterIp: string;
  readonly nodePort: number;
  /** Makes exactly these pods the Service's endpoints; resolves when the API server has acknowledged. */
  setEndpoints(...pods: readonly PodName[]): Promise<void>;
  /** Milliseconds until the cluster IP on node1 and the node port of node2 are answered by `pod`, 90 s at most. */
  awaitAnswerOf(pod: PodName): Promise<number>;
  /** Starts another agent process on node `index`, in the place of the one that has ended, and waits until it is healthy. */
  replaceAgent(index: 0 | 1, options?: AgentOptions): Promise<void>;
  /** As `replaceAgent`, without waiting for its health. */
  startAgent(index: 0 | 1, options?: AgentOptions): LabProcess;
  /**
   * Sends requests to all three addresses while `action` runs, on a fixed schedule, each over a connection of its own.
   * Fails the test when one was lost, or when fewer were sent than the schedule has.
   */
  underLoad<T>(action: () => Promise<T>): Promise<T>;
}

const podPort = 8080;
const loadBalancerIp = parseIp('192.0.2.80');
/** Requests per second and address. */
const rate = 20;
/** Shorter than the kernel's first retransmission of a SYN: one dropped packet is one lost request. */
const requestTimeout = millis(900);
const { signal } = new AbortController();

/** Builds the lab `name` (1 to 8 characters) and waits until all three addresses answer. */
export async function startFaultLab(name: string, agentOptions: AgentOptions = {}): Promise<FaultLab> {
  await using stack = new AsyncDisposableStack();
  const cluster = stack.use(await startCluster({ name, nodes: 2, ipFamilies: ['IPv4'] }, signal));
  const nodes = cluster.lab.nodes as readonly [LabNode, LabNode];
  const pods = await startPods(cluster, nodes);
  const caller = await cluster.lab.addPod(nodes[0], 'caller');
  const prober = stack.use(await createProber(caller, signal));
  const service = await createService(cluster);
  await cluster.lab.routeToNode([loadBalancerIp], nodes[0]);
  const lab = new RunningLab({ cluster, nodes, pods, prober, caller, ...service });
  await lab.setEndpoints('a', 'c');
  for (const index of [0, 1] as const) lab.startAgent(index, agentOptions);
  await waitForAgents(cluster.lab, lab.agents, signal);
  lab.owned = stack.move();
  return lab;
}

async function startPods(cluster: LabCluster, nodes: readonly [LabNode, LabNode]): Promise<Map<PodName, LabPod>> {
  const pods = new Map<PodName, LabPod>();
  for (const [name, node] of [
    ['a', nodes[0]],
    ['b', nodes[0]],
    ['c', nodes[1]],
    ['d', nodes[1]],
  ] as const) {
    const pod = await cluster.lab.addPod(node, name);
    startEchoServer(pod, { pod: name, node: node.nodeName, http: [podPort] });
    pods.set(name, pod);
  }
  return pods;
}

async function createService(cluster: LabCluster): Promise<{ readonly clusterIp: string; readonly nodePort: number }> {
  const metadata = { name: 'stable', namespace: 'default' };
  const spec = { type: 'LoadBalancer' as const, ports: [{ name: 'http', port: 80 }] };
  const created = await cluster.api.create(apiResources.services, { metadata, spec }, signal);
  const status = { loadBalancer: { ingress: [{ ip: loadBalancerIp }] } };
  await cluster.api.updateStatus(apiResources.services, { ...created, status }, signal);
  return { clusterIp: created.spec?.clusterIP ?? '', nodePort: created.spec?.ports?.[0]?.nodePort ?? 0 };
}

interface LabParts {
  readonly cluster: LabCluster;
  readonly nodes: readonly [LabNode, LabNode];
  readonly pods: ReadonlyMap<PodName, LabPod>;
  readonly prober: Prober;
  readonly caller: LabHost;
  readonly clusterIp: string;
  readonly nodePort: number;
}

class RunningLab implements FaultLab {
  readonly cluster: LabCluster;
  readonly nodes: readonly [LabNode, LabNode];
  readonly prober: Prober;
  readonly clusterIp: string;
  readonly nodePort: number;
  owned: AsyncDisposableStack | undefined;
  readonly #parts: LabParts;
  readonly #agents: LabProcess[] = [];
  #hasSlice = false;

  constructor(parts: LabParts) {
    this.#parts = parts;
    this.cluster = parts.cluster;
    this.nodes = parts.nodes;
    this.prober = parts.prober;
    this.clusterIp = parts.clusterIp;
    this.nodePort = parts.nodePort;
  }

  get agents(): readonly [LabProcess, LabProcess] {
    return this.#agents as unknown as readonly [LabProcess, LabProcess]; // both are started first of all
  }

  startAgent(index: 0 | 1, options?: AgentOptions): LabProcess {
    const agent = this.cluster.startAgent(this.nodes[index], options);
    this.#agents[index] = agent;
    return agent;
  }

  async replaceAgent(index: 0 | 1, options?: AgentOptions): Promise<void> {
    this.startAgent(index, options);
    await waitForAgents(this.cluster.lab, this.agents, signal);
  }

  async setEndpoints(...names: readonly PodName[]): Promise<void> {
    const { api } = this.cluster;
    const endpoints = names.map((name) => {
      const pod = this.#parts.pods.get(name);
      const nodeName = pod?.node.nodeName ?? '';
      return { addresses: [pod?.addresses.IPv4 ?? ''], nodeName, conditions: { ready: true } };
    });
    const labels = { 'kubernetes.io/service-name': 'stable' };
    const annotations = { 'endpoints.kubernetes.io/last-change-trigger-time': new Date().toISOString() };
    const slice = {
      metadata: { name: 'stable', namespace: 'default', labels, annotations },
      addressType: 'IPv4' as const,
      ports: [{ name: 'http', port: podPort, protocol: 'TCP' as const }],
      endpoints,
    };
    if (this.#hasSlice) await api.update(apiResources.endpointSlices, slice, signal);
    else await api.create(apiResources.endpointSlices, slice, signal);
    this.#hasSlice = true;
  }

  async awaitAnswerOf(pod: PodName): Promise<number> {
    const start = performance.now();
    const until = { by: pod, interval: 20, timeout: 90_000 };
    const targets = [
      { address: this.clusterIp, port: 80 },
      { address: this.nodes[1].addresses.IPv4 ?? '', port: this.nodePort },
    ];
    for (const target of targets) {
      const answer = await this.prober.awaitAnswer({ protocol: 'http', ...target, path: '/' }, until);
      expect(answer.result, `${target.address}:${target.port}`).toMatchObject({ status: 'answered', by: pod });
    }
    return performance.now() - start;
  }

  async underLoad<T>(action: () => Promise<T>): Promise<T> {
    const { caller } = this.#parts;
    const { client } = this.cluster.lab;
    const targets = [
      { what: 'cluster IP', from: caller, url: `http://${this.clusterIp}/` },
      { what: 'node port', from: client, url: `http://${this.nodes[1].addresses.IPv4}:${this.nodePort}/` },
      { what: 'load-balancer IP', from: client, url: `http://${loadBalancerIp}/` },
    ];
    await using stack = new AsyncDisposableStack();
    const loads = targets.map(({ what, from, url }) => {
      const options = { url, rate, timeout: requestTimeout, duration: seconds(300) };
      return { what, run: stack.use(startLoad(from, options)) };
    });
    for (const { run } of loads) for await (const _ of run) break; // all are under way
    const start = performance.now();
    const value = await action();
    await systemClock.sleep(millis(300), signal);
    const due = ((performance.now() - start) / 1000) * rate;
    for (const { what, run } of loads) {
      const results = await run.stop();
      expect(results.filter(({ outcome }) => outcome !== 'answered').slice(0, 5), `lost at the ${what}`).toEqual([]);
      expect(results.length, `sent to the ${what}`).toBeGreaterThan(due * 0.9);
    }
    return value;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.owned?.disposeAsync();
  }
}
