import {
  abortable,
  type IpAddress,
  messageOf,
  type Millis,
  millis,
  type NodeName,
  type ServiceKey,
} from '@switchyard/core';
import type { PodEndpoints } from './gate-state.ts';
import { type NodeParts, NodesApplied } from './nodes-applied.ts';
import type { ConnectionsReply } from './protocol.ts';

/** Which pod ends, and how long a caller waits. */
export interface DrainRequest {
  /** Of one pod; one of each family. */
  readonly addresses: readonly IpAddress[];
  readonly timeout: Millis;
  /** Whether open connections keep the gate closed. */
  readonly connections: 'wait' | 'ignore';
  /** `stop`: it ends, and no request comes any more. `start`: every node has applied that it is ready. */
  readonly goal: 'stop' | 'start';
}

/** Whether a pod can be stopped without a lost request. */
export interface DrainAnswer {
  readonly addresses: readonly IpAddress[];
  readonly isSafe: boolean;
  readonly waited: Millis;
  readonly services: readonly ServiceKey[];
  readonly node: NodeName | undefined;
  readonly nodes: {
    readonly total: number;
    readonly applied: number;
    /** The last one that has applied it, and when, from the moment at which the slices said that the pod ends. */
    readonly slowest?: { readonly node: NodeName; readonly after: Millis };
    readonly waiting: readonly { readonly node: NodeName; readonly why: string }[];
  };
  /** Open TCP connections of the pod; undefined while they were not counted, or cannot be. */
  readonly connections: number | undefined;
  /** Why it is not safe, or what could not be found out. */
  readonly reasons: readonly string[];
}

/** Access of a drain to the cluster. */
export interface DrainParts extends NodeParts {
  /** Resolves with the next change of the state. */
  readonly changed: () => Promise<void>;
  /** Counts the connections of a pod on its node. Rejects with any error if the node does not answer. */
  readonly countConnections: (
    node: NodeName,
    pod: { readonly addresses: readonly IpAddress[]; readonly ports: ReadonlySet<number> },
    signal: AbortSignal,
  ) => Promise<ConnectionsReply>;
}

/** Packets that were chosen for the pod before the last node had applied it arrive within this time. */
const settleTime = millis(20);
/** Why nodes are not asked yet. */
const unknownYet = {
  stop: 'its EndpointSlices offer it as ready: it does not end',
  start: 'no EndpointSlice offers it as ready',
} as const;
/** Time between two counts of connections. */
const countInterval = millis(50);

/**
 * Waits until a pod that ends can be stopped without a lost request, or until the time is over. Rejects with the reason of the signal.
 * It asks nodes only after the slices say that the pod ends: kubelets run preStop before the control plane writes those.
 */
export async function drain(request: DrainRequest, parts: DrainParts, signal: AbortSignal): Promise<DrainAnswer> {
  return new Drain(request, parts).run(signal);
}

class Drain {
  readonly #request: DrainRequest;
  readonly #parts: DrainParts;
  readonly #begin: number;
  #endpoints: PodEndpoints | undefined;
  #nodes: NodesApplied | undefined;
  #connections: number | undefined;
  /** Why the gate is closed, besides nodes. */
  #reason: string | undefined;

  constructor(request: DrainRequest, parts: DrainParts) {
    this.#request = request;
    this.#parts = parts;
    this.#begin = parts.clock.monotonic();
  }

  async run(signal: AbortSignal): Promise<DrainAnswer> {
    const stop = new AbortController();
    const end = AbortSignal.any([signal, stop.signal]);
    const isLate = this.#parts.clock.sleep(this.#request.timeout, end).then(
      () => {
        stop.abort();
        return true;
      },
      () => false,
    );
    let isSafe = false;
    try {
      const endpoints = await this.#untilKnown(end);
      await this.#untilApplied(endpoints, end);
      if (this.#request.goal === 'stop') await this.#untilClosed(endpoints, end);
      isSafe = true;
    } catch (error) {
      signal.throwIfAborted();
      if (!stop.signal.aborted) throw error;
    }
    stop.abort();
    await isLate;
    return this.#answer(isSafe);
  }

  async #untilKnown(end: AbortSignal): Promise<PodEndpoints> {
    const { state, changed } = this.#parts;
    for (;;) {
      end.throwIfAborted();
      const change = changed();
      const endpoints = state.endpointsOf(this.#request.addresses);
      if (state.isInSync) {
        this.#endpoints = endpoints;
        if (endpoints.isEnding === (this.#request.goal === 'stop')) return endpoints;
      }
      this.#reason = state.isInSync ? unknownYet[this.#request.goal] : 'Nodes and EndpointSlices are not listed yet';
      await abortable(change, end);
    }
  }

  async #untilApplied({ version, served }: PodEndpoints, end: AbortSignal): Promise<void> {
    this.#reason = undefined;
    const pods = this.#request.goal === 'stop' ? served : [];
    this.#nodes = new NodesApplied({ version, pods }, this.#parts, end);
    await abortable(this.#nodes.all, end);
  }

  async #untilClosed({ nodeName, ports }: PodEndpoints, end: AbortSignal): Promise<void> {
    const { clock, countConnections } = this.#parts;
    if (nodeName === undefined) return; // in no slice: no proxy sends there
    await clock.sleep(settleTime, end);
    for (;;) {
      const pod = { addresses: this.#request.addresses, ports };
      let reply: ConnectionsReply;
      try {
        reply = await countConnections(nodeName, pod, end);
      } catch (error) {
        end.throwIfAborted();
        reply = { node: nodeName, why: `node ${nodeName} does not answer: ${messageOf(error)}` };
      }
      this.#connections = reply.connections;
      if (reply.connections === undefined) {
        this.#reason = `open connections were not counted: ${reply.why ?? 'unknown'}`;
        return;
      }
      this.#reason = reply.connections > 0 ? `${reply.connections} connections are open` : undefined;
      if (reply.connections === 0 || this.#request.connections === 'ignore') return;
      await clock.sleep(countInterval, end);
    }
  }

  #answer(isSafe: boolean): DrainAnswer {
    const { served = [], nodeName } = this.#endpoints ?? {};
    const { total = 0, slowest, waiting = [] } = this.#nodes ?? {};
    return {
      addresses: this.#request.addresses,
      isSafe,
      waited: millis(this.#parts.clock.monotonic() - this.#begin),
      services: [...new Set(served.map(({ service }) => service))].toSorted(),
      node: nodeName,
      nodes: {
        total,
        applied: total - waiting.length,
        ...(slowest === undefined ? {} : { slowest }),
        waiting,
      },
      connections: this.#connections,
      reasons: [
        ...waiting.map(({ node, why }) => `node ${node} ${why}`),
        ...(this.#reason === undefined ? [] : [this.#reason]),
      ],
    };
  }
}
