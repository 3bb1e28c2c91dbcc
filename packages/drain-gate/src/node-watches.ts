import { type Clock, HostError, type Millis, millis, type NodeName, type Port } from '@switchyard/core';
import { askConnections, askNode, type NodePlace } from './ask-http.ts';
import type { GateState } from './gate-state.ts';
import { NodeWatch, type Want } from './node-watch.ts';
import type { ConnectionsReply, CountedPod } from './protocol.ts';

/** How to reach the nodes' agents. */
export interface NodeWatchesOptions {
  readonly state: GateState;
  /** Health port of the nodes' agents. */
  readonly nodePort: Port;
  /** Failing health checks in a row after which a load balancer has left a node. */
  readonly failures: number;
  readonly clock: Pick<Clock, 'sleep'>;
  /** Ends all waits. */
  readonly signal: AbortSignal;
}

/** A request costs 0.1 ms of CPU: with 5,000 nodes drains within 0.1 s share them, with few nodes none waits. */
function gatherTime(nodes: number): Millis {
  return millis(Math.min(100, Math.floor(nodes / 50)));
}

/** The agents of all nodes, over HTTP. */
export class NodeWatches {
  readonly #options: NodeWatchesOptions;
  readonly #watches = new Map<NodeName, NodeWatch>();
  /** Wants that wait for others, to share requests. */
  #gathered: (readonly [NodeName, Want])[] = [];

  constructor(options: NodeWatchesOptions) {
    this.#options = options;
  }

  /** Waits for a node, until the want's signal. */
  waitFor(node: NodeName, want: Want): void {
    this.#gathered.push([node, want]);
    if (this.#gathered.length === 1) void this.#gather();
  }

  async #gather(): Promise<void> {
    const { state, clock, signal } = this.#options;
    await clock.sleep(gatherTime(state.nodes.size), signal).catch(() => undefined);
    const wants = this.#gathered;
    this.#gathered = [];
    for (const [node, want] of wants) {
      if (state.nodes.has(node)) this.#watchOf(node).add(want);
      else want.note({ kind: 'deleted' });
    }
  }

  /** Ends the waits for deleted Nodes. Call it after each change of the state. */
  follow(): void {
    for (const [node, watch] of this.#watches) {
      if (this.#options.state.nodes.has(node)) continue;
      watch.close();
      this.#watches.delete(node);
    }
  }

  /** Counts the connections of a pod on its node. Rejects with `HostError` if the node does not answer. */
  async countConnections(node: NodeName, pod: CountedPod, signal: AbortSignal): Promise<ConnectionsReply> {
    return askConnections(this.#placeOf(node), pod, signal);
  }

  #watchOf(node: NodeName): NodeWatch {
    const { failures, clock } = this.#options;
    const known = this.#watches.get(node);
    if (known !== undefined) return known;
    const watch = new NodeWatch({
      ask: async (question, signal) => askNode(this.#placeOf(node), question, signal),
      failures,
      clock,
    });
    this.#watches.set(node, watch);
    return watch;
  }

  #placeOf(node: NodeName): NodePlace {
    const { state, nodePort } = this.#options;
    const [address] = state.nodes.get(node)?.addresses ?? [];
    if (address === undefined) throw new HostError('drain.address', `Node ${node} has no address in its status`);
    return { address, port: nodePort };
  }
}
