import type { NodeName } from '../model/records/keys.ts';
import type { ResourceKind } from '../model/state/cluster-event.ts';
import { type Millis, millis, seconds } from '../base/time.ts';
import type { BackOffBounds } from '../base/back-off.ts';

/** Nodes to follow: a node agent needs its own, a controller all. */
export type NodeScope = { readonly kind: 'one'; readonly name: NodeName } | { readonly kind: 'all' };

/** Path of a resource and selection of its objects. */
export interface ResourceQuery<K extends string> {
  readonly kind: K;
  readonly path: string;
  /** Sent with every list and watch. */
  readonly selectors: Readonly<Record<string, string>>;
  /** Whether the resource counts as empty on servers that do not know it. */
  readonly isOptional: boolean;
}

/** One query per watched resource. */
type ResourceQueries = { readonly [K in ResourceKind]: ResourceQuery<K> };

/**
 * Returns the queries of kube-proxy 1.36: headless Services, Services of another proxy and slices of headless
 * Services never leave the server. ServiceCIDR is served since Kubernetes 1.31 (KEP-1880).
 */
export function resourceQueries(nodes: NodeScope): ResourceQueries {
  const query = <K extends ResourceKind>(
    kind: K,
    path: string,
    selectors: ResourceQuery<K>['selectors'],
  ): ResourceQuery<K> => ({ kind, path, selectors, isOptional: kind === 'ServiceCIDR' });
  return {
    Service: query('Service', '/api/v1/services', {
      fieldSelector: 'spec.clusterIP!=None',
      labelSelector: '!service.kubernetes.io/service-proxy-name',
    }),
    EndpointSlice: query('EndpointSlice', '/apis/discovery.k8s.io/v1/endpointslices', {
      labelSelector: '!service.kubernetes.io/headless',
    }),
    Node: query('Node', '/api/v1/nodes', nodes.kind === 'one' ? { fieldSelector: `metadata.name=${nodes.name}` } : {}),
    ServiceCIDR: query('ServiceCIDR', '/apis/networking.k8s.io/v1/servicecidrs', {}),
  };
}

/** How patient a reflector is. */
export interface ReflectorTimings {
  readonly backOff: BackOffBounds;
  /** Time limit of a connection attempt. The kernel would retry for two minutes, at growing intervals. */
  readonly connect: Millis;
  /** Range of the requested duration of a watch; each is random, so that watches do not end together. */
  readonly watchTimeout: { readonly min: Millis; readonly max: Millis };
  /** Longest silence of a watch. Bookmarks arrive about once a minute. */
  readonly inactivity: Millis;
  /** Longest silence while initial events are sent. */
  readonly initialInactivity: Millis;
  /** A shorter watch without events counts as a failure. */
  readonly shortWatch: Millis;
  /** Longest wait before the next request for a resource that the server does not know. */
  readonly absentRecheck: Millis;
}

/** The timings of a node agent. */
export const defaultTimings: ReflectorTimings = {
  backOff: { first: millis(200), max: seconds(30) },
  connect: seconds(10),
  watchTimeout: { min: seconds(300), max: seconds(600) },
  inactivity: seconds(130),
  initialInactivity: seconds(30),
  shortWatch: seconds(1),
  absentRecheck: seconds(300),
};
