import {
  type ClusterEvent,
  EndpointIndex,
  type EndpointSliceRecord,
  isEqual,
  type NodeName,
  type ServiceKey,
} from '@switchyard/core';
import type { LoadBalancerNode, LoadBalancerService } from './cluster-objects.ts';

/** Cluster objects that load balancers depend on, as last seen. One owner changes them in place. */
export interface ClusterView {
  /** Those that are, or may once have been, a matter of load balancers. Undefined until all Services were listed. */
  readonly services: ReadonlyMap<ServiceKey, LoadBalancerService> | undefined;
  /** Undefined until all Nodes were listed. */
  readonly nodes: ReadonlyMap<NodeName, LoadBalancerNode> | undefined;
  /** Undefined until all EndpointSlices were listed. */
  readonly slices: ServiceSlices | undefined;
}

/** EndpointSlices by Service. */
export interface ServiceSlices {
  /** Of both families, in no particular order; without topology hints, which are not for load balancers. Empty if there are none. */
  slicesOf(service: ServiceKey): readonly EndpointSliceRecord[];
}

/** A view in which everything was listed: only from such a one may be planned. */
export type SyncedView = { readonly [K in keyof ClusterView]: NonNullable<ClusterView[K]> };

/** Whether everything was listed in full once. */
export function isInSync(view: ClusterView): view is SyncedView {
  return view.services !== undefined && view.nodes !== undefined && view.slices !== undefined;
}

/** Services whose load balancers a change may concern. */
export type ClusterChange =
  | { readonly kind: 'all' }
  /** Only these Services, deleted ones included. */
  | { readonly kind: 'services'; readonly keys: ReadonlySet<ServiceKey> };

/** A change of one resource. `replace` carries everything there is. */
export type ResourceEvent<V> =
  | { readonly kind: 'replace'; readonly items: readonly V[] }
  | { readonly kind: 'upsert'; readonly item: V }
  | { readonly kind: 'delete'; readonly name: string };

const all: ClusterChange = { kind: 'all' };

/**
 * The cluster as the watches last described it. Each `take` returns the Services that the event may concern; undefined where nothing
 * that load balancers depend on has changed, as at the heartbeat of a Node.
 *
 * Of Services only those that concern load balancers are kept. Slices are kept of all Services, because one may become
 * a load balancer at any time, and its slices would not be sent again; changes are reported only for load balancers.
 */
export class ClusterStore {
  #services: Map<ServiceKey, LoadBalancerService> | undefined;
  #nodes: Map<NodeName, LoadBalancerNode> | undefined;
  readonly #slices = new EndpointIndex();
  #hasSlices = false;

  /** The present state; a new object each time, but its maps change in place. */
  get view(): ClusterView {
    return { services: this.#services, nodes: this.#nodes, slices: this.#hasSlices ? this.#slices : undefined };
  }

  /** Those for which `isKept` is false count as gone. */
  takeServices(
    event: ResourceEvent<LoadBalancerService>,
    isKept: (service: LoadBalancerService) => boolean,
  ): ClusterChange | undefined {
    const isFirst = this.#services === undefined;
    const services = (this.#services ??= new Map<ServiceKey, LoadBalancerService>());
    const keys = fold(services, event, { keyOf: ({ record }) => record.key, isKept });
    if (isFirst) return all;
    return keys.size === 0 ? undefined : { kind: 'services', keys };
  }

  takeNodes(event: ResourceEvent<LoadBalancerNode>): ClusterChange | undefined {
    const isFirst = this.#nodes === undefined;
    const nodes = (this.#nodes ??= new Map<NodeName, LoadBalancerNode>());
    const changed = fold(nodes, event, { keyOf: ({ name }) => name, isKept: () => true });
    return isFirst || changed.size > 0 ? all : undefined;
  }

  takeSlices(event: ClusterEvent & { readonly resource: 'EndpointSlice' }): ClusterChange | undefined {
    const touched = this.#applySlices(event).filter((key) => this.#services?.get(key)?.record.type === 'LoadBalancer');
    if (event.kind === 'replace' && !this.#hasSlices) {
      this.#hasSlices = true;
      return all;
    }
    return touched.length === 0 ? undefined : { kind: 'services', keys: new Set(touched) };
  }

  #applySlices(event: ClusterEvent & { readonly resource: 'EndpointSlice' }): readonly ServiceKey[] {
    if (event.kind === 'upsert') return this.#slices.upsert(event.item);
    if (event.kind === 'delete') return this.#slices.delete(event.name as EndpointSliceRecord['key']);
    const stays = new Set(event.items.map(({ key }) => key));
    const gone = [...this.#slices.keys()].filter((key) => !stays.has(key));
    return [
      ...gone.flatMap((key) => this.#slices.delete(key)),
      ...event.items.flatMap((slice) => this.#slices.upsert(slice)),
    ];
  }
}

interface Folding<K, V> {
  readonly keyOf: (item: V) => K;
  readonly isKept: (item: V) => boolean;
}

/** Brings `into` up to date and returns the keys whose values have changed, gone ones among them. */
function fold<K extends string, V>(into: Map<K, V>, event: ResourceEvent<V>, { keyOf, isKept }: Folding<K, V>): Set<K> {
  const changed = new Set<K>();
  const remove = (key: K): unknown => into.delete(key) && changed.add(key);
  const put = (item: V): void => {
    const key = keyOf(item);
    if (!isKept(item)) return void remove(key);
    if (isEqual(into.get(key), item)) return;
    into.set(key, item);
    changed.add(key);
  };
  if (event.kind === 'upsert') put(event.item);
  else if (event.kind === 'delete') remove(event.name as K); // reflectors name an object by its record's key
  else {
    const stays = new Set(event.items.map(keyOf));
    for (const key of into.keys()) if (!stays.has(key)) remove(key);
    event.items.forEach(put);
  }
  return changed;
}
