import type { IpAddress, IpFamily } from '../ip/address.ts';
import type { Cidr } from '../ip/cidr.ts';
import type { Port, Protocol } from '../ip/port.ts';
import type {
  EndpointRecord,
  TrafficPolicy,
  EndpointSliceRecord,
  NodeRecord,
  ServiceRecord,
} from '../records/records.ts';
import type { ServiceKey, ServicePortKey, NodeName } from '../records/keys.ts';
import type { Millis } from '../../base/time.ts';

/** Class of a sender, by detection on this node. `pod` needs a pod detector; without one, pods are `outside`. */
export type SourceClass = 'pod' | 'node' | 'outside';

/** All source classes, in the order in which they are always walked. */
export const sourceClasses: readonly SourceClass[] = ['pod', 'node', 'outside'];

/** Treatment of the first packet of a connection. */
export type Decision =
  | { readonly kind: 'forward'; readonly to: TrafficPolicy; readonly masquerade: boolean }
  /** No usable endpoint anywhere: answer with an ICMP error or RST. */
  | { readonly kind: 'reject' }
  /** Endpoints exist, none this policy may use here: stay silent. */
  | { readonly kind: 'drop' };

/** An `ipMode` of a load-balancer IP that is neither `VIP` nor `Proxy`. */
export interface OddIpMode {
  /** Value in the Service's status. */
  readonly written: string;
  /** `VIP` for every value that is not known, and for `Router` unless `TableOptions.routerIpMode` says otherwise. */
  readonly takenAs: 'VIP' | 'Router';
}

/** One address, port and protocol by which a service is reached. */
export interface Frontend {
  readonly kind: 'clusterIP' | 'externalIP' | 'loadBalancerIP' | 'nodePort';
  /** NodePorts answer on every local address inside the table's `nodePortCidrs`. */
  readonly address: IpAddress | 'anyNodePortAddress';
  readonly port: Port;
  readonly decisions: Readonly<Record<SourceClass, Decision>>;
  /**
   * `loadBalancerSourceRanges` of this family; only loadBalancerIP frontends are filtered. A source
   * outside the ranges is dropped before anything else is decided.
   */
  readonly allowedSources: 'any' | readonly Cidr[];
  /** Only of load-balancer IPs; absent for `VIP`. For `explain` and the log; never rendered. */
  readonly ipMode?: OddIpMode;
}

/** A load-balancer IP with ipMode `Router` that is no frontend now: no endpoint on this node is usable. */
export type RoutedPlace = Pick<Frontend, 'kind' | 'address' | 'port'>;

/** One IP and port that can serve. Conditions are verbatim from the EndpointSlice, defaulted. */
export interface Endpoint extends EndpointRecord {
  readonly port: Port;
  /** On this node. */
  readonly isLocal: boolean;
}

/** How the `Cluster` set was narrowed by topology hints (KEP-2433, KEP-3015). */
export type TopologyMode = 'none' | 'sameZone' | 'sameNode';

/** A frontend that a Service claims and another claimant has. */
export interface LostFrontend {
  readonly frontend: Frontend;
  /** The Service port that has it; `apiServer`: this process reaches the API server there. */
  readonly winner: ServicePortKey | 'apiServer';
}

/** Forwarding of one Service port in one IP family on this node. */
export interface ServiceForwarding {
  readonly key: ServicePortKey;
  readonly service: ServiceKey;
  readonly protocol: Protocol;
  /**
   * Cluster IP, load-balancer IPs, external IPs, NodePort, in this order; addresses sorted within a
   * kind. No two frontends of a table share address, port and protocol.
   */
  readonly frontends: readonly Frontend[];
  /**
   * Frontends left out because another Service port has them: a cluster IP wins over a load-balancer IP, which
   * wins over an external IP; then the lower key wins. Also those at an address of the API server
   * (`TableOptions.apiServers`). For `explain` and status; never rendered.
   */
  readonly lostFrontends: readonly LostFrontend[];
  /**
   * Places left to the route; absent when there are none. No other Service gets them either. For `explain`; never
   * rendered.
   */
  readonly leftToRoute?: readonly RoutedPlace[];
  /**
   * Usable endpoints per policy, sorted by address then port; terminating fallback applied (KEP-1669).
   * A set that no decision of this service can lead to is empty.
   */
  readonly endpoints: Readonly<Record<TrafficPolicy, readonly Endpoint[]>>;
  /** Every endpoint the slices name for this port, same order, usable or not. For `explain` and conntrack. */
  readonly knownEndpoints: readonly Endpoint[];
  /** Effective policies: `external` is `Cluster` for a Service port that is not externally reachable. */
  readonly policies: { readonly internal: TrafficPolicy; readonly external: TrafficPolicy };
  readonly topology: TopologyMode;
  readonly sessionAffinity: { readonly kind: 'none' } | { readonly kind: 'clientIP'; readonly timeout: Millis };
}

/** The desired answer of one healthCheckNodePort server. */
export interface HealthCheck {
  readonly service: ServiceKey;
  readonly port: Port;
  /**
   * Distinct local, ready endpoint IPs over all ports (not IP:port pairs). Serving-but-terminating
   * endpoints carry traffic but do not count, so that load balancers drain this node (KEP-1669).
   */
  readonly localReadyEndpoints: number;
}

/** Detection of packets from pods in the kernel. */
export type PodDetector =
  | { readonly kind: 'none' }
  | { readonly kind: 'cidr'; readonly cidr: Cidr }
  /** Packets from the interface with this name. */
  | { readonly kind: 'interface'; readonly name: string }
  /** Packets from interfaces whose names begin with this prefix. */
  | { readonly kind: 'interfacePrefix'; readonly prefix: string };

/**
 * How this node's own processes reach NodePorts on loopback addresses.
 *
 * - `none`: not at all.
 * - `kernel`: rules forward what is sent to those addresses of 127.0.0.0/8 that are inside `nodePortCidrs`; at least one is. IPv4
 *   only, in the iptables mode only (kube-proxy's `iptables.localhostNodePorts`).
 * - `proxy`: the agent listens on the `loopbackAddress` of the family and connects to endpoints itself. TCP only (KEP-6032).
 */
export type NodePortsOnLoopback = 'none' | 'kernel' | 'proxy';

/** Immutable, one per IP family. A service that did not change is the same object as in the previous table. */
export interface ForwardingTable {
  readonly ipFamily: IpFamily;
  /** Grows by one with each build that differs from its predecessor. */
  readonly generation: number;
  /**
   * In key order. Successive tables share what did not change, so keeping an old table is cheap; a
   * lookup costs a binary search.
   */
  readonly services: ReadonlyMap<ServicePortKey, ServiceForwarding>;
  readonly healthChecks: ReadonlyMap<ServiceKey, HealthCheck>;
  /**
   * NodePorts answer on local addresses inside one of these, loopback excluded but for `nodePortsOnLoopback`. A
   * zero-length CIDR means all addresses of the family; empty means none. No CIDR is there twice.
   */
  readonly nodePortCidrs: readonly Cidr[];
  readonly nodePortsOnLoopback: NodePortsOnLoopback;
  readonly serviceCidrs: readonly Cidr[];
  readonly podDetector: PodDetector;
}

/** Changes between two tables, by identity of the service objects. */
export interface TableDelta {
  /** Added or changed services, in key order. */
  readonly upserted: readonly ServiceForwarding[];
  readonly removed: readonly ServicePortKey[];
  /**
   * Anything outside `services` that a backend renders: nodePortCidrs, nodePortsOnLoopback, serviceCidrs, podDetector, ports of
   * health checks.
   */
  readonly settingsChanged: boolean;
}

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
