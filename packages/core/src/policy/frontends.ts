import type { TableOptions } from '../forwarding/build-table-types.ts';
import type { Frontend } from '../forwarding/forwarding-table.ts';
import { compareIps, type IpAddress, type IpFamily, ipFamilyOf } from '../ip/address.ts';
import type { ServicePortRecord, ServiceRecord, TrafficPolicy } from '../records/service.ts';

/** A frontend before anything is decided about it. */
export type FrontendPlace = Pick<Frontend, 'kind' | 'address' | 'port'>;

/**
 * Load-balancer IPs of a family that this node captures, sorted, each once. `Proxy` leaves an address to its load
 * balancer (KEP-1860). The API does not say what an unknown mode means; it captures, so that an address never loses its
 * rules on the day a newer API server adds a mode. The Service's type is not asked: the status is what a controller
 * says works.
 */
export function capturedLoadBalancerIps(service: ServiceRecord, ipFamily: IpFamily): readonly IpAddress[] {
  const captured = service.loadBalancerIngress.filter((ingress) => ingress.ipMode !== 'Proxy');
  return ofFamily(
    captured.map((ingress) => ingress.ip),
    ipFamily,
  );
}

/** What decides about frontends besides the Service. */
export interface FrontendChoice {
  /** Its family is that of all frontends. */
  readonly clusterIp: IpAddress;
  readonly externalIps: TableOptions['externalIps'];
}

/**
 * The places at which one Service port answers in a family: cluster IP, load-balancer IPs, external
 * IPs, NodePort. An address that plays two roles is listed once, in the first; so an external IP that
 * is also a load-balancer IP keeps its source ranges.
 * External IPs may be switched off (feature gate `AllowServiceExternalIPs`).
 */
export function frontendPlaces(
  service: ServiceRecord,
  port: ServicePortRecord,
  { clusterIp, externalIps }: FrontendChoice,
): readonly FrontendPlace[] {
  const ipFamily = ipFamilyOf(clusterIp);
  const places: FrontendPlace[] = [{ kind: 'clusterIP', address: clusterIp, port: port.port }];
  const add = (kind: Frontend['kind'], addresses: readonly IpAddress[]): void => {
    for (const address of addresses) {
      if (places.every((place) => place.address !== address)) places.push({ kind, address, port: port.port });
    }
  };
  add('loadBalancerIP', capturedLoadBalancerIps(service, ipFamily));
  if (externalIps === 'forward') add('externalIP', ofFamily(service.externalIps, ipFamily));
  if (port.nodePort !== undefined) {
    places.push({ kind: 'nodePort', address: 'anyNodePortAddress', port: port.nodePort });
  }
  return places;
}

/** Whether a Service port with these frontends can be reached other than by its cluster IP. */
export function isExternallyReachable(places: readonly FrontendPlace[]): boolean {
  return places.some((place) => place.kind !== 'clusterIP');
}

/**
 * The `externalTrafficPolicy` that counts. A ClusterIP Service without external IPs may carry a
 * leftover `Local`, which means nothing; neither does it for a port nobody outside can reach.
 */
export function effectiveExternalPolicy(service: ServiceRecord, places: readonly FrontendPlace[]): TrafficPolicy {
  return hasExternalTraffic(service) && isExternallyReachable(places) ? service.externalTrafficPolicy : 'Cluster';
}

/** The port of the health-check server that the Service needs on every node, if it needs one. */
export function healthCheckPort(service: ServiceRecord): ServiceRecord['healthCheckNodePort'] {
  return service.type === 'LoadBalancer' && service.externalTrafficPolicy === 'Local'
    ? service.healthCheckNodePort
    : undefined;
}

/** The API's rule for Services whose external traffic policy has a meaning. */
function hasExternalTraffic(service: ServiceRecord): boolean {
  return service.type === 'NodePort' || service.type === 'LoadBalancer' || service.externalIps.length > 0;
}

function ofFamily(addresses: readonly IpAddress[], ipFamily: IpFamily): readonly IpAddress[] {
  if (addresses.length === 0) return addresses;
  return [...new Set(addresses.filter((address) => ipFamilyOf(address) === ipFamily))].sort(compareIps);
}
