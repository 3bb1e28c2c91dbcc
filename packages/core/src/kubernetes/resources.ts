import type { NodeName } from '../model/records/keys.ts';
import type { ResourceKind } from '../model/state/cluster-event.ts';

/** Nodes to follow: a node agent needs its own, a controller all. */
export type NodeScope = { readonly kind: 'one'; readonly name: NodeName } | { readonly kind: 'all' };

/** Path of a resource and selection of its objects. */
export interface ResourceQuery<K extends ResourceKind> {
  readonly kind: K;
  readonly path: string;
  /** Sent with every list and watch. */
  readonly selectors: Readonly<Record<string, string>>;
  /** Whether the resource counts as empty on servers that do not know it. */
  readonly isOptional: boolean;
}

/** One query per watched resource. */
export type ResourceQueries = { readonly [K in ResourceKind]: ResourceQuery<K> };

/**
 * Returns the queries of kube-proxy 1.36: headless Services, Services of another proxy and slices of headless
 * Services never leave the server. ServiceCIDR is served since Kubernetes 1.31 (KEP-1880).
 */
export function resourceQueries(nodes: NodeScope): ResourceQueries {
  return {
    Service: {
      kind: 'Service',
      path: '/api/v1/services',
      selectors: {
        fieldSelector: 'spec.clusterIP!=None',
        labelSelector: '!service.kubernetes.io/service-proxy-name',
      },
      isOptional: false,
    },
    EndpointSlice: {
      kind: 'EndpointSlice',
      path: '/apis/discovery.k8s.io/v1/endpointslices',
      selectors: { labelSelector: '!service.kubernetes.io/headless' },
      isOptional: false,
    },
    Node: {
      kind: 'Node',
      path: '/api/v1/nodes',
      selectors: nodes.kind === 'one' ? { fieldSelector: `metadata.name=${nodes.name}` } : {},
      isOptional: false,
    },
    ServiceCIDR: {
      kind: 'ServiceCIDR',
      path: '/apis/networking.k8s.io/v1/servicecidrs',
      selectors: {},
      isOptional: true,
    },
  };
}
