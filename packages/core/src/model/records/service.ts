import type { IpAddress, IpFamily } from '../ip/address.ts';
import type { Cidr } from '../ip/cidr.ts';
import type { Port, Protocol } from '../ip/port.ts';
import type { Millis } from '../../base/time.ts';
import type { ServiceKey } from './keys.ts';

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
