import type { ClusterEvent, Records, ResourceKind } from '../model/state/cluster-event.ts';
import type { ClusterSpec } from './cluster.ts';

/** One delivery and the cluster it leads to. */
export interface SequenceStep {
  readonly batch: readonly ClusterEvent[];
  readonly cluster: ClusterSpec;
}

/** A way to get through a list of cluster states. */
export interface Sequence {
  /** Completes "the states …": for test names. */
  readonly name: string;
  /** The first starts from an empty cluster whose resources may or may not have been listed. */
  readonly steps: readonly SequenceStep[];
}

/**
 * Every list of states also runs reversed, with empty clusters between, squashed into one batch, with
 * every event twice, relisted, and with the events of each step backwards (so that Services leave
 * after their slices, too). A tear-down in which only part of a state goes needs states of its own.
 */
export function expandStates(states: readonly ClusterSpec[]): readonly Sequence[] {
  const reversed = [...states].reverse();
  const forwards = stepsThrough(states);
  const last = states.at(-1) ?? {};
  return [
    { name: 'as written', steps: forwards },
    { name: 'reversed', steps: stepsThrough(reversed) },
    { name: 'with empties between', steps: stepsThrough(states.flatMap((state) => [state, {}])) },
    { name: 'squashed', steps: [{ batch: forwards.flatMap((step) => step.batch), cluster: last }] },
    {
      name: 'with every event twice',
      steps: withBatches(forwards, (batch) => batch.flatMap((event) => [event, event])),
    },
    { name: 'with every batch twice', steps: forwards.flatMap((step) => [step, step]) },
    { name: 'relisted each time', steps: states.map((cluster) => ({ batch: replaceAll(cluster), cluster })) },
    { name: 'with the events of each step backwards', steps: withBatches(forwards, (batch) => [...batch].reverse()) },
    { name: 'one event at a time', steps: [...oneByOne(forwards), { batch: [], cluster: last }] },
  ];
}

/** Upserts and deletes that lead from one cluster to another: one event per object that differs by identity. */
export function eventsBetween(from: ClusterSpec, to: ClusterSpec): readonly ClusterEvent[] {
  const before = contents(from);
  const after = contents(to);
  const events: ClusterEvent[] = [];
  for (const [id, entry] of after) if (before.get(id)?.record !== entry.record) events.push(entry.upsert);
  for (const [id, entry] of before) if (!after.has(id)) events.push(entry.remove);
  return events;
}

/** The four `replace` events with which a source delivers a cluster: after them it is in sync. */
export function replaceAll(cluster: ClusterSpec): readonly ClusterEvent[] {
  return [
    { kind: 'replace', resource: 'Service', items: cluster.services ?? [] },
    { kind: 'replace', resource: 'EndpointSlice', items: cluster.slices ?? [] },
    { kind: 'replace', resource: 'Node', items: cluster.nodes ?? [] },
    { kind: 'replace', resource: 'ServiceCIDR', items: cluster.serviceCidrs ?? [] },
  ];
}

interface Entry {
  readonly record: Records[ResourceKind];
  readonly upsert: ClusterEvent;
  readonly remove: ClusterEvent;
}

function contents(cluster: ClusterSpec): ReadonlyMap<string, Entry> {
  const all = new Map<string, Entry>();
  for (const item of cluster.services ?? []) {
    all.set(`Service ${item.key}`, {
      record: item,
      upsert: { kind: 'upsert', resource: 'Service', item },
      remove: { kind: 'delete', resource: 'Service', name: item.key },
    });
  }
  for (const item of cluster.slices ?? []) {
    all.set(`EndpointSlice ${item.key}`, {
      record: item,
      upsert: { kind: 'upsert', resource: 'EndpointSlice', item },
      remove: { kind: 'delete', resource: 'EndpointSlice', name: item.key },
    });
  }
  for (const item of cluster.nodes ?? []) {
    all.set(`Node ${item.name}`, {
      record: item,
      upsert: { kind: 'upsert', resource: 'Node', item },
      remove: { kind: 'delete', resource: 'Node', name: item.name },
    });
  }
  for (const item of cluster.serviceCidrs ?? []) {
    all.set(`ServiceCIDR ${item.name}`, {
      record: item,
      upsert: { kind: 'upsert', resource: 'ServiceCIDR', item },
      remove: { kind: 'delete', resource: 'ServiceCIDR', name: item.name },
    });
  }
  return all;
}

function stepsThrough(states: readonly ClusterSpec[]): readonly SequenceStep[] {
  return states.map((cluster, index) => ({ batch: eventsBetween(states[index - 1] ?? {}, cluster), cluster }));
}

function withBatches(
  steps: readonly SequenceStep[],
  change: (batch: readonly ClusterEvent[]) => readonly ClusterEvent[],
): readonly SequenceStep[] {
  return steps.map(({ batch, cluster }) => ({ batch: change(batch), cluster }));
}

/** Single events, each with the cluster as it is then: in between, half of a step has happened. */
function oneByOne(steps: readonly SequenceStep[]): readonly SequenceStep[] {
  let now: ClusterSpec = {};
  return steps.flatMap(({ batch }) =>
    batch.map((event) => {
      now = applied(now, event);
      return { batch: [event], cluster: now };
    }),
  );
}

function applied(cluster: ClusterSpec, event: ClusterEvent): ClusterSpec {
  if (event.kind === 'replace') return cluster; // never made by eventsBetween
  switch (event.resource) {
    case 'Service':
      return { ...cluster, services: edited(cluster.services, (item) => item.key, event) };
    case 'EndpointSlice':
      return { ...cluster, slices: edited(cluster.slices, (item) => item.key, event) };
    case 'Node':
      return { ...cluster, nodes: edited(cluster.nodes, (item) => item.name, event) };
    case 'ServiceCIDR':
      return { ...cluster, serviceCidrs: edited(cluster.serviceCidrs, (item) => item.name, event) };
  }
}

function edited<T>(
  items: readonly T[] = [],
  keyOf: (item: T) => string,
  event: { readonly kind: 'upsert'; readonly item: T } | { readonly kind: 'delete'; readonly name: string },
): readonly T[] {
  const name = event.kind === 'upsert' ? keyOf(event.item) : event.name;
  const rest = items.filter((item) => keyOf(item) !== name);
  return event.kind === 'upsert' ? [...rest, event.item] : rest;
}
