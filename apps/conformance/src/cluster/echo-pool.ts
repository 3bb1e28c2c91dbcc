import { HostError, type IpAddress, type IpFamily, ipFamilyOf, UsageError } from '@switchyard/core';
import type { ProbeResult } from '@switchyard/lab';
import type { ScenarioFlow } from '@switchyard/scenarios';
import { seenOf } from '../lab/answers.ts';
import type { Seen } from '../model/test-environment.ts';
import type { NodePair } from './preflight.ts';
import { podPort, type PodStarter, startPods, type TrafficPod } from './start-pods.ts';
import { callPod } from './traffic-caller.ts';

/** An endpoint of a scenario, and the ports that its pod must listen on, by protocol. */
export interface WantedEndpoint {
  readonly address: IpAddress;
  readonly node: string;
  readonly ports: ReadonlySet<number>;
}

/** Unprivileged pods cannot listen on privileged ports; this is added to those. */
const raisedBy = 20_000;
const firstUnprivileged = 1024;

/** The port that stands for a target port of a scenario. */
export function realPort(port: number): number {
  if (port === podPort)
    throw new UsageError('cluster.port', `target port ${port} is where pods take orders; use another`);
  return port < firstUnprivileged ? port + raisedBy : port;
}

/** The inverse of `realPort`. */
function scenarioPort(port: number): number {
  return port >= raisedBy && port < raisedBy + firstUnprivileged ? port - raisedBy : port;
}

/** Pods that stand for endpoints. They are made on demand and stay until the end; `clear` frees them for other endpoints. */
export class EchoPool {
  readonly #starter: PodStarter;
  readonly #nodes: NodePair;
  readonly #pods = { node1: [] as TrafficPod[], node2: [] as TrafficPod[] };
  readonly #podsByAddress = new Map<IpAddress, TrafficPod>();
  readonly #listening = new Map<TrafficPod, Set<number>>();

  constructor(starter: PodStarter, nodes: NodePair) {
    this.#starter = starter;
    this.#nodes = nodes;
  }

  /** Frees all pods from their endpoints; they continue to listen. */
  clear(): void {
    this.#podsByAddress.clear();
  }

  /** Undefined for an address that no endpoint has had since `clear`. */
  podOf(address: IpAddress): TrafficPod | undefined {
    return this.#podsByAddress.get(address);
  }

  realAddress(address: IpAddress): IpAddress {
    const real = this.#podsByAddress.get(address)?.addresses[ipFamilyOf(address)];
    if (real !== undefined) return real;
    throw new UsageError('cluster.endpoint', `no pod stands for the endpoint ${address}`);
  }

  /** Endpoint of this family that a pod stands for; undefined: none. */
  endpointOf(pod: string, ipFamily: IpFamily): IpAddress | undefined {
    for (const [address, { name }] of this.#podsByAddress) {
      if (name === pod && ipFamilyOf(address) === ipFamily) return address;
    }
    return undefined;
  }

  /** Gives every endpoint a pod that listens on its ports, and makes missing pods. */
  async provide(all: readonly WantedEndpoint[], signal: AbortSignal): Promise<void> {
    const wanted = eachOnce(all);
    const missing = wanted.filter(({ address }) => !this.#podsByAddress.has(address));
    await Promise.all((['node1', 'node2'] as const).map((node) => this.#provideOn(node, missing, signal)));
    await Promise.all(wanted.map((one) => this.#listen(one, signal)));
  }

  async #provideOn(node: 'node1' | 'node2', missing: readonly WantedEndpoint[], signal: AbortSignal): Promise<void> {
    const here = missing.filter((one) => one.node === node);
    const free = (ipFamily: IpFamily): TrafficPod[] =>
      this.#pods[node].filter(({ name }) => this.endpointOf(name, ipFamily) === undefined);
    const lacking = Math.max(
      0,
      ...(['IPv4', 'IPv6'] as const).map(
        (family) => here.filter(({ address }) => ipFamilyOf(address) === family).length - free(family).length,
      ),
    );
    const first = this.#pods[node].length;
    const plans = Array.from({ length: lacking }, (_, index) => ({
      name: `echo-${node.slice(-1)}-${first + index}`,
      node: this.#nodes[node].name,
      isOnHostNetwork: false,
    }));
    this.#pods[node].push(...(await startPods(this.#starter, plans, signal)));
    for (const { address } of here) {
      const [pod] = free(ipFamilyOf(address));
      if (pod !== undefined) this.#podsByAddress.set(address, pod);
    }
  }

  async #listen({ address, ports }: WantedEndpoint, signal: AbortSignal): Promise<void> {
    const pod = this.#podsByAddress.get(address);
    if (pod === undefined) return;
    const open = this.#listening.get(pod) ?? new Set();
    this.#listening.set(pod, open);
    const missing = [...ports].map(realPort).filter((port) => !open.has(port));
    if (missing.length === 0) return;
    const argument = { http: [], tcp: missing, udp: missing };
    const { failed } = await callPod(this.#starter.caller, pod, { name: 'listen', argument }, signal);
    if (failed.length > 0)
      throw new HostError('cluster.listen', `pod ${pod.name} cannot listen on ${failed.join(', ')}`);
    for (const port of missing) open.add(port);
  }
}

/** Cases that are put together share endpoints. */
function eachOnce(all: readonly WantedEndpoint[]): readonly WantedEndpoint[] {
  return [...Map.groupBy(all, ({ address }) => address).values()].flatMap((same) => {
    const [first] = same;
    return first === undefined ? [] : [{ ...first, ports: new Set(same.flatMap(({ ports }) => [...ports])) }];
  });
}

/** A probe's result in the terms of a scenario. `source`: the address the packet left with. `nodeAddresses`: all that masquerading can mean. */
export function seenInCluster(
  result: ProbeResult,
  context: {
    readonly flow: ScenarioFlow;
    readonly source: string;
    readonly nodeAddresses: readonly string[];
    readonly endpointOf: (pod: string) => IpAddress | undefined;
  },
): Seen {
  const { flow, source, nodeAddresses, endpointOf } = context;
  return seenOf(result, {
    endpointOf,
    sender: flow.fromEndpoint,
    portOf: scenarioPort,
    wanted: `, not ${source}`,
    // Packets of the node always have one of its addresses: if it is the one they were sent from, masquerading cannot be seen.
    isMasqueraded: (seen, isSender) => {
      if (seen !== source) return nodeAddresses.includes(seen) ? true : undefined;
      if (!nodeAddresses.includes(source) || flow.expect.kind !== 'forward') return false;
      return isSender ? flow.expect.isHairpinMasqueraded : flow.expect.masquerade;
    },
  });
}
