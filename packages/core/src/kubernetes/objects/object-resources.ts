import type {
  ApiObject,
  DaemonSet,
  Deployment,
  EndpointSlice,
  EventObject,
  Namespace,
  Node,
  Pod,
  ReplicaSet,
  Service,
  ServiceCidr,
} from './object-types.ts';

/** One resource of the API server and, through `T`, the shape of its objects. */
export interface ApiResource<T extends ApiObject> {
  /** '' is the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
  /** Never set; carries `T`. */
  readonly _object?: T;
}

/** The resources that lab controllers use. */
export const apiResources: {
  readonly services: ApiResource<Service>;
  readonly endpointSlices: ApiResource<EndpointSlice>;
  readonly nodes: ApiResource<Node>;
  readonly pods: ApiResource<Pod>;
  readonly namespaces: ApiResource<Namespace>;
  readonly events: ApiResource<EventObject>;
  readonly deployments: ApiResource<Deployment>;
  /** Served only with the option `ClusterOptions.hasDaemonSets`. */
  readonly daemonSets: ApiResource<DaemonSet>;
  readonly replicaSets: ApiResource<ReplicaSet>;
  readonly serviceCidrs: ApiResource<ServiceCidr>;
} = {
  services: { group: '', version: 'v1', plural: 'services', kind: 'Service', isNamespaced: true },
  endpointSlices: {
    group: 'discovery.k8s.io',
    version: 'v1',
    plural: 'endpointslices',
    kind: 'EndpointSlice',
    isNamespaced: true,
  },
  nodes: { group: '', version: 'v1', plural: 'nodes', kind: 'Node', isNamespaced: false },
  pods: { group: '', version: 'v1', plural: 'pods', kind: 'Pod', isNamespaced: true },
  namespaces: { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false },
  events: { group: '', version: 'v1', plural: 'events', kind: 'Event', isNamespaced: true },
  deployments: { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment', isNamespaced: true },
  daemonSets: { group: 'apps', version: 'v1', plural: 'daemonsets', kind: 'DaemonSet', isNamespaced: true },
  replicaSets: { group: 'apps', version: 'v1', plural: 'replicasets', kind: 'ReplicaSet', isNamespaced: true },
  serviceCidrs: {
    group: 'networking.k8s.io',
    version: 'v1',
    plural: 'servicecidrs',
    kind: 'ServiceCIDR',
    isNamespaced: false,
  },
};
