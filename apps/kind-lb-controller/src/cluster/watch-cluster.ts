import type { V1EndpointSlice, V1Node, V1Service } from '@kubernetes/client-node';
import type {
  ClusterEvent,
  Clock,
  EndpointSliceRecord,
  Logger,
  NodeRecord,
  Random,
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
import {
  concernsLoadBalancers,
  type LoadBalancerNode,
  type LoadBalancerService,
  newSliceProjection,
  nodeFromApi,
  serviceFromApi,
} from './cluster-objects.ts';
import { type ClusterChange, ClusterStore, type ClusterView, type ResourceEvent } from './cluster-store.ts';

/** Client, surroundings and receiver of a cluster watch. */
export interface WatchClusterOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Called after each change that matters, with the whole view. Must not throw. */
  readonly onChange: (view: ClusterView, change: ClusterChange) => void;
  readonly timings?: Partial<ReflectorTimings>;
}

/** Reflectors hand on records and know nothing of load balancers: a record carries our view of the object. */
type Carrier<R, V> = R & { readonly carried: V };

/**
 * Follows all Services, Nodes and EndpointSlices until aborted; then rejects with `signal.reason`. Never gives up on an API
 * server that is away; it keeps the last view meanwhile.
 */
export async function watchCluster(options: WatchClusterOptions, signal: AbortSignal): Promise<void> {
  const store = new ClusterStore();
  const deliver = (event: ClusterEvent): void => {
    const change = take(store, event);
    if (change !== undefined) options.onChange(store.view, change);
  };
  const shared = {
    client: options.client,
    deliver,
    clock: options.clock,
    random: options.random,
    log: options.log,
    timings: { ...defaultTimings, ...options.timings },
  };
  const everything = { selectors: {}, isOptional: false };
  const serviceReflector = new Reflector<'Service', ServiceRecord>({
    ...shared,
    query: { kind: 'Service', path: '/api/v1/services', ...everything },
    // The path that was asked says what the objects are.
    project: (raw) => carry(recordFromService(raw as V1Service), serviceFromApi(raw as V1Service)),
  });
  const nodeReflector = new Reflector<'Node', NodeRecord>({
    ...shared,
    query: { kind: 'Node', path: '/api/v1/nodes', ...everything },
    project: (raw) => carry(recordFromNode(raw as V1Node), nodeFromApi(raw as V1Node)),
  });
  const projectSlice = newSliceProjection();
  const sliceReflector = new Reflector<'EndpointSlice', EndpointSliceRecord>({
    ...shared,
    query: {
      kind: 'EndpointSlice',
      path: '/apis/discovery.k8s.io/v1/endpointslices',
      selectors: { labelSelector: '!service.kubernetes.io/headless' },
      isOptional: false,
    },
    project: (raw) => projectSlice(raw as V1EndpointSlice),
  });
  await Promise.all([serviceReflector.run(signal), nodeReflector.run(signal), sliceReflector.run(signal)]);
}

function take(store: ClusterStore, event: ClusterEvent): ClusterChange | undefined {
  switch (event.resource) {
    case 'Service':
      return store.takeServices(carriedBy<LoadBalancerService>(event), concernsLoadBalancers);
    case 'Node':
      return store.takeNodes(carriedBy<LoadBalancerNode>(event));
    case 'EndpointSlice':
      return store.takeSlices(event);
    default:
      return undefined; // not watched
  }
}

function carry<R extends ServiceRecord | NodeRecord, V>(
  projected: Projected<R>,
  carried: V | undefined,
): Projected<Carrier<R, V>> {
  if (projected.status !== 'record') return projected;
  if (carried === undefined) return { status: 'ignored', name: projected.name, reason: 'malformed' };
  return { ...projected, record: { ...projected.record, carried } };
}

/** An event of what `carry` put into the records. */
function carriedBy<V>(event: ClusterEvent): ResourceEvent<V> {
  const open = (item: unknown): V => (item as Carrier<object, V>).carried;
  if (event.kind === 'replace') return { kind: 'replace', items: event.items.map(open) };
  return event.kind === 'upsert' ? { kind: 'upsert', item: open(event.item) } : event;
}
