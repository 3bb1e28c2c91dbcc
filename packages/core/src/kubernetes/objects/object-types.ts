import type * as api from '@kubernetes/client-node';

/** An API type as JSON carries it: read-only, and times as text. Go writes null for some times that are not set. */
export type Wire<T> = T extends Date
  ? string | null
  : T extends readonly (infer Item)[]
    ? readonly Wire<Item>[]
    : T extends object
      ? { readonly [Field in keyof T]: Wire<T[Field]> }
      : T;

/** Metadata of an object. */
export type ObjectMeta = Omit<Wire<api.V1ObjectMeta>, 'creationTimestamp' | 'deletionTimestamp'> & {
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
};
/** A reference to an object that owns another one; `controller: true` marks the one that manages it. */
export type OwnerReference = Wire<api.V1OwnerReference>;

/** Fields of every object. `kind` and `apiVersion` are absent on list items. */
export interface ApiObject {
  readonly kind?: string;
  readonly apiVersion?: string;
  readonly metadata: ObjectMeta;
}

/** A kind of client-node on the wire, with its metadata. */
type Kind<T> = ApiObject & Omit<Wire<T>, keyof ApiObject>;

/** One entry of `status.conditions`: each kind has some of these fields. */
export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string | null;
  readonly lastUpdateTime?: string | null;
  readonly lastProbeTime?: string | null;
  readonly lastHeartbeatTime?: string | null;
}

/** A label selector as in Deployments; empty selects everything. */
export type LabelSelector = Wire<api.V1LabelSelector>;
/** One port of a Service. */
export type ServicePortObject = Wire<api.V1ServicePort>;
/** v1 Service. */
export type Service = Kind<api.V1Service>;
/** One endpoint of an EndpointSlice. */
export type EndpointObject = Wire<api.V1Endpoint>;
/** discovery.k8s.io/v1 EndpointSlice. `endpoints` and `ports` may be null, which means empty. */
export type EndpointSlice = Omit<Kind<api.V1EndpointSlice>, 'endpoints' | 'ports'> & {
  readonly endpoints?: readonly EndpointObject[] | null;
  readonly ports?: readonly Wire<api.DiscoveryV1EndpointPort>[] | null;
};
/** v1 Node. */
export type Node = Omit<Kind<api.V1Node>, 'status'> & {
  readonly status?: Omit<Wire<api.V1NodeStatus>, 'nodeInfo'> & {
    readonly nodeInfo?: Partial<Wire<api.V1NodeSystemInfo>>;
  };
};
/** Probe by which the kubelet checks a container. */
export type Probe = Wire<api.V1Probe>;
/** One container of a pod. */
export type Container = Wire<api.V1Container>;
/** One required rule of pod anti-affinity. */
export type PodAffinityTerm = Wire<api.V1PodAffinityTerm>;
/** Specification of a pod. */
export type PodSpec = Wire<api.V1PodSpec>;
/** v1 Pod. */
export type Pod = Kind<api.V1Pod>;
/** The template from which a Deployment, ReplicaSet or DaemonSet makes pods. */
export type PodTemplate = Wire<api.V1PodTemplateSpec>;
/** apps/v1 Deployment. The server defaults replicas 1, RollingUpdate 25 %/25 %, history 10, deadline 600 s. */
export type Deployment = Kind<api.V1Deployment>;
/** apps/v1 DaemonSet. The server defaults RollingUpdate with maxUnavailable 1 and maxSurge 0. */
export type DaemonSet = Kind<api.V1DaemonSet>;
/** v1 Namespace. */
export type Namespace = Kind<api.V1Namespace>;
/** networking.k8s.io/v1 ServiceCIDR. */
export type ServiceCidr = Kind<api.V1ServiceCIDR>;
/** v1 Event. */
export type EventObject = Kind<api.CoreV1Event>;

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
  serviceCidrs: {
    group: 'networking.k8s.io',
    version: 'v1',
    plural: 'servicecidrs',
    kind: 'ServiceCIDR',
    isNamespaced: false,
  },
};
