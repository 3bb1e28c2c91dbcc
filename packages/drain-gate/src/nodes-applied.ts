import { type Clock, type Millis, millis, type NodeName } from '@switchyard/core';
import type { GateState } from './gate-state.ts';
import type { Want } from './node-watch.ts';

/** Access to the cluster's nodes. */
export interface NodeParts {
  readonly state: GateState;
  /** Waits for a node. */
  readonly waitFor: (node: NodeName, want: Want) => void;
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
}

/** A node for which something waits. */
export interface WaitingNode {
  readonly node: NodeName;
  readonly why: string;
}

/** Waits for all nodes that the cluster has at the start, until the signal aborts. */
export class NodesApplied {
  readonly total: number;
  /** Resolves when no node is waited for any more. */
  readonly all: Promise<void>;
  readonly #waiting: Map<NodeName, string>;
  #slowest: { readonly node: NodeName; readonly after: Millis } | undefined;

  constructor(want: Pick<Want, 'version' | 'pods'>, { state, waitFor, clock }: NodeParts, signal: AbortSignal) {
    const from = clock.monotonic();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.all = promise;
    const unknown = want.version > 0 ? `has not confirmed version ${want.version} yet` : 'has not answered yet';
    this.#waiting = new Map([...state.nodes.keys()].map((node) => [node, unknown]));
    this.total = this.#waiting.size;
    if (this.total === 0) resolve();
    for (const node of this.#waiting.keys()) {
      const note: Want['note'] = (news) => {
        if (news.kind === 'waiting') return void this.#waiting.set(node, news.why);
        this.#waiting.delete(node);
        if (news.kind === 'applied') this.#slowest = { node, after: millis(clock.monotonic() - from) };
        if (this.#waiting.size === 0) resolve();
      };
      waitFor(node, { ...want, signal, note });
    }
  }

  /** The last one that has applied it, and when, from the start. */
  get slowest(): { readonly node: NodeName; readonly after: Millis } | undefined {
    return this.#slowest;
  }

  get waiting(): readonly WaitingNode[] {
    return [...this.#waiting].map(([node, why]) => ({ node, why }));
  }
}
