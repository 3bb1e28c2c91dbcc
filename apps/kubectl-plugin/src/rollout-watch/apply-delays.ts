import { millis, type Millis } from '@switchyard/core';
import type { EndpointChange, EndpointCondition, NodeChange, RolloutRecording } from './recording.ts';

/** A change of an EndpointSlice, and how long the nodes took to apply it. */
export interface ChangeApply extends EndpointChange {
  /** Name of the pod with this address, if it was seen. */
  readonly pod: string | undefined;
  /** The last node, and its delay after the first sight of the change, by kubectl or by a node. Undefined if no node has applied it. */
  readonly slowest: { readonly node: string; readonly at: Millis; readonly delay: Millis } | undefined;
  readonly applied: number;
  /** Nodes with an agent that have not applied it. */
  readonly missing: readonly string[];
}

/** An agent may receive a change before kubectl has printed it. */
const earliest = 1000;

const order: readonly EndpointCondition[] = ['notReady', 'ready', 'terminating', 'removed'];

/** Changes of the EndpointSlices during the watch, in their order, each with the nodes' applies. */
export function changeApplies(recording: RolloutRecording): readonly ChangeApply[] {
  const nodes = watchedNodes(recording);
  const podOf = new Map(recording.pods.flatMap(({ name, addresses }) => addresses.map((one) => [one, name] as const)));
  return recording.slices
    .filter(({ isBefore }) => !isBefore)
    .map(({ at, service, address, condition }) => {
      const change = { at, service, address, condition };
      const times = nodes.map((node) => ({ node, at: appliedAt(recording.applies, { change, node }) }));
      const applied = times.filter(
        (one): one is { readonly node: string; readonly at: Millis } => one.at !== undefined,
      );
      const last = applied.toSorted((a, b) => b.at - a.at)[0];
      const first = Math.min(change.at, ...applied.map(({ at }) => at));
      return {
        ...change,
        pod: podOf.get(change.address),
        slowest: last && { ...last, delay: millis(last.at - first) },
        applied: applied.length,
        missing: times.filter(({ at }) => at === undefined).map(({ node }) => node),
      };
    });
}

/** Nodes whose changes were watched. */
export function watchedNodes({ nodes }: RolloutRecording): readonly string[] {
  return nodes.filter(({ accuracy }) => accuracy !== undefined).map(({ node }) => node);
}

interface Applied {
  readonly change: EndpointChange;
  readonly node: string;
}

/** When the node had applied the change for the last of the Service's ports. It may skip a condition that lasted for a moment. */
function appliedAt(applies: readonly NodeChange[], { change, node }: Applied): Millis | undefined {
  const byPort = new Map<string, Millis>();
  for (const { at, node: on, service, address, condition } of applies) {
    if (on !== node || address !== change.address || !isPortOf(service, change.service)) continue;
    if (at < change.at - earliest || byPort.has(service)) continue;
    const isSame = condition === change.condition;
    if (isSame || (change.condition !== 'ready' && order.indexOf(condition) > order.indexOf(change.condition)))
      byPort.set(service, at);
  }
  return byPort.size === 0 ? undefined : millis(Math.max(...byPort.values()));
}

/** `key`: NAMESPACE/NAME:PORT, as agents write it. */
function isPortOf(key: string, service: string): boolean {
  const [name] = key.slice(key.indexOf('/') + 1).split(':');
  return name === service;
}
