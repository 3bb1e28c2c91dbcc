import type { V1Node, V1Service } from '@kubernetes/client-node';
import type {
  ClusterEvent,
  Clock,
  Logger,
  NodeName,
  NodeRecord,
  Random,
  ServiceKey,
  ServiceRecord,
} from '@switchyard/core';
import {
  type ApiClient,
  defaultTimings,
  type Projected,
  Reflector,
  type ReflectorTimings,
  recordFromNode,
  recordFromService,
} from '@switchyard/core/kubernetes';
import { type LoadBalancerNode, type LoadBalancerService, nodeFromApi, serviceFromApi } from './cluster-objects.ts';

/** What load balancers depend on, as last seen. One owner; changed in place. */
export interface ClusterView {
  /** Undefined until all Services were listed. */
  readonly services: ReadonlyMap<ServiceKey, LoadBalancerService> | undefined;
  /** Undefined until all Nodes were listed. */
  readonly nodes: ReadonlyMap<NodeName, LoadBalancerNode> | undefined;
}

/** What following the cluster needs. */
export interface WatchClusterOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Called after each change with the whole view. Must not throw. */
  readonly onChange: (view: ClusterView) => void;
  readonly timings?: Partial<ReflectorTimings>;
}

/** Reflectors hand on records and know nothing of load balancers: a record carries our view of the object. */
type Carrier<R, V> = R & { readonly carried: V };

/**
 * Follows all Services and Nodes until aborted; then rejects with `signal.reason`. Never gives up on an API server
 * that is away; it keeps the last view meanwhile.
 */
export async function watchCluster(options: WatchClusterOptions, signal: AbortSignal): Promise<void> {
  let services: Map<ServiceKey, LoadBalancerService> | undefined;
  let nodes: Map<NodeName, LoadBalancerNode> | undefined;
  const deliver = (event: ClusterEvent): void => {
    if (event.resource === 'Service') services = fold(services, event, ({ record }) => record.key);
    else if (event.resource === 'Node') nodes = fold(nodes, event, ({ name }) => name);
    options.onChange({ services, nodes });
  };
  const shared = {
    client: options.client,
    deliver,
    clock: options.clock,
    random: options.random,
    log: options.log,
    timings: { ...defaultTimings, ...options.timings },
  };
  const all = { selectors: {}, isOptional: false };
  const serviceReflector = new Reflector<'Service'>({
    ...shared,
    query: { kind: 'Service', path: '/api/v1/services', ...all },
    // The path that was asked says what the objects are.
    project: (raw) => carry(recordFromService(raw as V1Service), serviceFromApi(raw as V1Service)),
  });
  const nodeReflector = new Reflector<'Node'>({
    ...shared,
    query: { kind: 'Node', path: '/api/v1/nodes', ...all },
    project: (raw) => carry(recordFromNode(raw as V1Node), nodeFromApi(raw as V1Node)),
  });
  await Promise.all([serviceReflector.run(signal), nodeReflector.run(signal)]);
}

function carry<R extends ServiceRecord | NodeRecord, V>(
  projected: Projected<R>,
  carried: V | undefined,
): Projected<Carrier<R, V>> {
  if (projected.status !== 'record') return projected;
  if (carried === undefined) return { status: 'ignored', name: projected.name, reason: 'malformed' };
  return { ...projected, record: { ...projected.record, carried } };
}

/** The next state of one resource. */
function fold<K extends string, V>(
  before: Map<K, V> | undefined,
  event: ClusterEvent,
  keyOf: (carried: V) => K,
): Map<K, V> | undefined {
  const carriedBy = (item: unknown): readonly [K, V] => {
    const { carried } = item as Carrier<object, V>; // what `carry` put in comes out again
    return [keyOf(carried), carried];
  };
  switch (event.kind) {
    case 'replace':
      return new Map(event.items.map(carriedBy));
    case 'upsert':
      return before?.set(...carriedBy(event.item));
    default:
      before?.delete(event.name as K); // reflectors name an object by its record's key
      return before;
  }
}
