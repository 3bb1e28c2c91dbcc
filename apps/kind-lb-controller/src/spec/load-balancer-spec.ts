import type { Cidr, IpAddress, Port, Protocol, ServiceKey, ServiceRecord } from '@switchyard/core';
import type { HealthProfile } from './health-profile.ts';

/** Which load balancer: one per Service, in one of the clusters that a controller serves. */
export interface LoadBalancerId {
  /** Name of the cluster as kind knows it. */
  readonly cluster: string;
  readonly service: ServiceKey;
}

/** One text per load balancer, for maps: `cluster/namespace/name`. */
export type LoadBalancerKey = `${string}/${ServiceKey}`;

/** The key of a load balancer. */
export function loadBalancerKey({ cluster, service }: LoadBalancerId): LoadBalancerKey {
  return `${cluster}/${service}`;
}

/**
 * How traffic goes through. `proxy`: HAProxy for TCP, the kernel with address translation for UDP and SCTP; nodes see the load
 * balancer's address. `transparent`: packets are forwarded unchanged to a node (direct server return), whose proxy
 * answers for the load balancer's address (`ipMode: VIP`, KEP-1860) straight to the client.
 */
export type ForwardingPath = 'proxy' | 'transparent';

/** Health check of a target: HTTP GET `path`, 200 means healthy. */
export interface TargetCheck {
  readonly address: IpAddress;
  readonly port: Port;
  /** For example `/healthz`. */
  readonly path: string;
}

/**
 * State of a target in EndpointSlices. `no`: it gets new connections while it is UP. `serving`: its endpoints terminate and go on
 * serving, so it gets them while no other target is UP, even if it fails its checks. `empty`: it has no endpoint, and gets none.
 */
export type Draining = 'no' | 'serving' | 'empty';

/** A node, or an endpoint where a Service has no NodePort, that connections may go to. */
export interface Target {
  /** Unique among a port's targets of one IP family; a valid HAProxy server name. The node's name, or `<node>:<address>`. */
  readonly name: string;
  readonly node: string;
  readonly address: IpAddress;
  /** NodePort, the Service's port (transparent), or the endpoint's port. */
  readonly port: Port;
  readonly check: TargetCheck;
  /** `no` without fast drain, except for endpoints that terminate. Not all targets of a port and family are `empty`. */
  readonly draining: Draining;
}

/** One Service port. */
export interface PortSpec {
  readonly port: Port;
  readonly protocol: Protocol;
  /** Those of the load balancer's addresses on which this port is served. */
  readonly addresses: readonly IpAddress[];
  /** Sorted by address family, then name. Targets of one family serve the addresses of that family. */
  readonly targets: readonly Target[];
}

/** A route that targets need: to pods, through their node. */
export interface RouteSpec {
  readonly destination: Cidr;
  readonly via: IpAddress;
}

/**
 * All that there is to know about one load balancer, as a value: it can be sent to a container as JSON, and compared
 * with `isEqual`. Equal cluster state gives equal specs.
 */
export interface LoadBalancerSpec {
  readonly id: LoadBalancerId;
  /** At most one per IP family, IPv4 first. */
  readonly addresses: readonly IpAddress[];
  readonly path: ForwardingPath;
  /** Sorted by port, then protocol. */
  readonly ports: readonly PortSpec[];
  /** Ranges of both families; a family without a range admits all its clients. */
  readonly sourceRanges: readonly Cidr[];
  readonly sessionAffinity: ServiceRecord['sessionAffinity'];
  /** Whether TCP connections begin with a PROXY protocol header, for which the application must be ready. */
  readonly proxyProtocol: 'none' | 'v2';
  /** Whether the `X-Load-Balancing-Endpoint-Weight` header of checks weighs targets (`externalTrafficPolicy: Local`). */
  readonly isWeighted: boolean;
  readonly profile: HealthProfile;
  readonly routes: readonly RouteSpec[];
}
