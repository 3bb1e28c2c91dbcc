import type { IpAddress, IpFamily } from '../ip/address.ts';
import type { Cidr } from '../ip/cidr.ts';
import type { Port, Protocol } from '../ip/port.ts';
import type { Millis } from '../../base/time.ts';
import type { ServiceKey, NodeName, SliceKey } from './keys.ts';

/** `internalTrafficPolicy` and `externalTrafficPolicy`: exactly the API's spelling. */
export type TrafficPolicy = 'Cluster' | 'Local';

/** One entry of `spec.ports`. */
export interface ServicePortRecord {
  /** Empty when the Service has a single unnamed port. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: Port;
  /** Undefined when none is allocated (`allocateLoadBalancerNodePorts: false`, ClusterIP). */
  readonly nodePort: Port | undefined;
}

/** One usable entry of `status.loadBalancer.ingress`: it has an IP. Hostname-only entries are left out. */
export interface LoadBalancerIngressRecord {
  readonly ip: IpAddress;
  /** KEP-1860. `Proxy`: the load balancer handles the traffic; `VIP` (also when the field is absent) and any other text is captured. */
  readonly ipMode: string;
}

/** The fields of a Service the dataplane uses, validated. Policy is not applied yet. */
export interface ServiceRecord {
  readonly key: ServiceKey;
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  /** Canonical addresses, at most one per family. Empty for headless Services. */
  readonly clusterIps: readonly IpAddress[];
  readonly isHeadless: boolean;
  /** `spec.ipFamilies`, or the family of the cluster IP for legacy objects. */
  readonly ipFamilies: readonly IpFamily[];
  readonly ports: readonly ServicePortRecord[];
  /** Valid ones only, canonical. */
  readonly externalIps: readonly IpAddress[];
  readonly loadBalancerIngress: readonly LoadBalancerIngressRecord[];
  /** As written, both families, canonical. Empty means unrestricted. */
  readonly loadBalancerSourceRanges: readonly Cidr[];
  /** As written; counts only if the Service is externally reachable. */
  readonly externalTrafficPolicy: TrafficPolicy;
  readonly internalTrafficPolicy: TrafficPolicy;
  readonly healthCheckNodePort: Port | undefined;
  readonly sessionAffinity: { readonly kind: 'none' } | { readonly kind: 'clientIP'; readonly timeout: Millis };
  /** Value of the label `service.kubernetes.io/service-proxy-name`, if set. */
  readonly serviceProxyName: string | undefined;
}

/** One endpoint of a slice; conditions are defaulted as the API says (KEP-1672). */
export interface EndpointRecord {
  /** `addresses[0]`: the only one a proxy may use. */
  readonly address: IpAddress;
  /** Missing means true. */
  readonly ready: boolean;
  /** Missing means true. */
  readonly serving: boolean;
  /** Missing means false. */
  readonly terminating: boolean;
  readonly nodeName: NodeName | undefined;
  /** `hints.forZones[].name`; empty when there is no hint. */
  readonly zoneHints: readonly string[];
  /** `hints.forNodes[].name` (KEP-3015); empty when there is no hint. */
  readonly nodeHints: readonly string[];
}

/** A port of a slice that has a name and a number; others are left out. */
export interface SlicePortRecord {
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: Port;
}

/** The fields of an EndpointSlice the dataplane uses. FQDN slices never become records. */
export interface EndpointSliceRecord {
  readonly key: SliceKey;
  /** From the label `kubernetes.io/service-name`; a slice without it never becomes a record. */
  readonly service: ServiceKey;
  readonly ipFamily: IpFamily;
  readonly ports: readonly SlicePortRecord[];
  readonly endpoints: readonly EndpointRecord[];
  /** `endpoints.kubernetes.io/last-change-trigger-time`, if present. Whole seconds. */
  readonly lastChangeTriggerTime: Millis | undefined;
}

/** The fields of a Node the dataplane uses. */
export interface NodeRecord {
  readonly name: NodeName;
  /** Label `topology.kubernetes.io/zone`; empty when not set. */
  readonly zone: string;
  /** `status.addresses` of type InternalIP, then ExternalIP; valid ones, canonical. */
  readonly addresses: readonly IpAddress[];
  readonly podCidrs: readonly Cidr[];
  /** KEP-3836: false when tainted `ToBeDeletedByClusterAutoscaler` or being deleted. */
  readonly isEligible: boolean;
}

/** A ServiceCIDR object: the ranges cluster IPs are allocated from. */
export interface ServiceCidrRecord {
  readonly name: string;
  readonly cidrs: readonly Cidr[];
}
