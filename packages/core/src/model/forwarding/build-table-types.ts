import type { IpAddress, IpFamily } from '../ip/address.ts';
import type { Cidr } from '../ip/cidr.ts';
import type { EndpointSliceRecord } from '../records/endpoint-slice.ts';
import type { NodeName, ServiceKey } from '../records/keys.ts';
import type { NodeRecord } from '../records/node.ts';
import type { ServiceRecord } from '../records/service.ts';
import type { Port } from '../ip/port.ts';
import type { NodePortsOnLoopback, PodDetector } from './forwarding-table.ts';

/** One address and TCP port of the API server. */
export interface ApiServerAddress {
  readonly address: IpAddress;
  readonly port: Port;
}

/** Options of the operator. */
export interface TableOptions {
  readonly ipFamily: IpFamily;
  /** Node of this agent. An empty name means nothing is local. */
  readonly nodeName: NodeName;
  readonly masqueradeAll: boolean;
  /** `off` is Kubernetes <= 1.25: terminating endpoints are never used. For experiments. */
  readonly terminatingFallback: 'on' | 'off';
  /** `ignore`: external IPs of Services get no frontends (feature gate `AllowServiceExternalIPs` off). */
  readonly externalIps: 'forward' | 'ignore';
  /**
   * `localOnly`: a load-balancer IP with ipMode `Router` leads to endpoints on this node only, and packets to it are left
   * to the route while there are none (feature gate `SwitchyardLoadBalancerIPModeRouter`). Default: `asVip`.
   */
  readonly routerIpMode?: 'localOnly' | 'asVip' | undefined;
  readonly podDetector: PodDetector;
  /** Address of this agent's Node by the operator's choice; undefined: the first one of the Node in this family. */
  readonly nodeIp?: IpAddress | undefined;
  /** See `ForwardingTable.nodePortCidrs`. */
  readonly nodePortCidrs: readonly Cidr[];
  /** The desired `ForwardingTable.nodePortsOnLoopback`, in force where `nodePortCidrs` allow it. Default: `none`. */
  readonly nodePortsOnLoopback?: NodePortsOnLoopback;
  /**
   * Addresses at which this process reaches the API server, both families. No external or load-balancer IP may capture
   * them, unless the Service leads to API servers. Default: none.
   */
  readonly apiServers?: readonly ApiServerAddress[];
}

/** Read-only view of cluster state that a table is built from. */
export interface ClusterStateView {
  readonly services: ReadonlyMap<ServiceKey, ServiceRecord>;
  /** Slices of a Service, all families, in no particular order. */
  slicesOf(service: ServiceKey): Iterable<EndpointSliceRecord>;
  readonly nodes: ReadonlyMap<NodeName, NodeRecord>;
  /** All ranges of all ServiceCIDR objects. */
  readonly serviceCidrs: readonly Cidr[];
}
