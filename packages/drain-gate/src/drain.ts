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
import { type ConnectionsReply, type CountedPod, type OpenConnections, openText } from './protocol.ts';

/** Which connections keep the gate closed: those of TCP and SCTP, also UDP flows that are in use, or none. */
export const connectionsWaits = ['wait', 'wait-udp', 'ignore'] as const;
export type ConnectionsWait = (typeof connectionsWaits)[number];

/** Which pod ends, and how long a caller waits. */
export interface DrainRequest {
  /** Of one pod; one of each family. */
  readonly addresses: readonly IpAddress[];
  readonly timeout: Millis;
  readonly connections: ConnectionsWait;
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
  /** Of the pod; empty while they were not counted. */
  readonly open: OpenConnections;
  /** Why it is not safe, or what could not be found out. */
  readonly reasons: readonly string[];
}

/** Access of a drain to the cluster. */
export interface DrainParts extends NodeParts {
  /** Resolves with the next change of the state. */
  readonly changed: () => Promise<void>;
  /** Counts the connections of a pod on its node. Rejects with any error if the node does not answer. */
  readonly countConnections: (node: NodeName, pod: CountedPod, signal: AbortSignal) => Promise<ConnectionsReply>;
}

/** Packets that were chosen for the pod before the last node had applied it arrive within this time. */
const settleTime = millis(20);
/** Why nodes are not asked yet. */
const unknownYet = {
  stop: 'its EndpointSlices offer it as ready: it does not end',
  start: 'no EndpointSlice offers it as ready',
} as const;
/** Time between two counts of connections; longer where the node has to look through its connection tracking. */
const countInterval = { sockets: millis(50), tracking: millis(500) } as const;

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
  #open: OpenConnections = {};
  /** Why the gate is closed, besides nodes. */
  #reasons: readonly string[] = [];

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
      this.#reasons = [state.isInSync ? unknownYet[this.#request.goal] : 'Nodes and EndpointSlices are not listed yet'];
      await abortable(change, end);
    }
  }

  async #untilApplied({ version, served }: PodEndpoints, end: AbortSignal): Promise<void> {
    this.#reasons = [];
    const pods = this.#request.goal === 'stop' ? served : [];
    this.#nodes = new NodesApplied({ version, pods }, this.#parts, end);
    await abortable(this.#nodes.all, end);
  }

  async #untilClosed({ nodeName, ports }: PodEndpoints, end: AbortSignal): Promise<void> {
    const { clock, countConnections } = this.#parts;
    if (nodeName === undefined) return; // in no slice: no proxy sends there
    await clock.sleep(settleTime, end);
    const { addresses, connections } = this.#request;
    const waited = [...ports.keys()].filter((protocol) => protocol !== 'UDP' || connections === 'wait-udp');
    const interval = countInterval[ports.has('UDP') || ports.has('SCTP') ? 'tracking' : 'sockets'];
    for (;;) {
      let reply: Omit<ConnectionsReply, 'node'>;
      try {
        reply = await countConnections(nodeName, { addresses, ports }, end);
      } catch (error) {
        end.throwIfAborted();
        reply = { open: {}, why: `node ${nodeName} does not answer: ${messageOf(error)}` };
      }
      const { open = {}, why = 'its agent is older than this gate' } = reply;
      const held = waited.filter((protocol) => (open[protocol] ?? 0) > 0);
      const uncounted = waited.filter((protocol) => open[protocol] === undefined);
      this.#open = open;
      this.#reasons = [
        ...held.map((protocol) => `${openText({ [protocol]: open[protocol] })} are open`),
        ...(uncounted.length > 0 ? [`open connections (${uncounted.join(', ')}) were not counted: ${why}`] : []),
      ];
      if (held.length === 0 || connections === 'ignore') return;
      await clock.sleep(interval, end);
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
      open: this.#open,
      reasons: [...waiting.map(({ node, why }) => `node ${node} ${why}`), ...this.#reasons],
    };
  }
}
