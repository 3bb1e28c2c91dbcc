import type { TableOptions } from '../forwarding/build-table-types.ts';
import type { Frontend, OddIpMode } from '../forwarding/forwarding-table.ts';
import { compareIps, type IpAddress, type IpFamily, ipFamilyOf } from '../ip/address.ts';
import type { ServicePortRecord, ServiceRecord, TrafficPolicy } from '../records/service.ts';

/** A frontend before anything is decided about it. */
export type FrontendPlace = Pick<Frontend, 'kind' | 'address' | 'port' | 'ipMode'>;

/**
 * Load-balancer IPs of a family that this node captures, sorted, each once. `Proxy` leaves an address to its load
 * balancer (KEP-1860). The API does not say what an unknown mode means; it captures, so that an address never loses its
 * rules on the day a newer API server adds a mode. The Service's type is not asked: the status is what a controller
 * says works. `Router` is among the captured ones; `frontendPlaces` says what it is taken as.
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
  readonly routerIpMode: NonNullable<TableOptions['routerIpMode']>;
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
  { clusterIp, externalIps, routerIpMode }: FrontendChoice,
): readonly FrontendPlace[] {
  const ipFamily = ipFamilyOf(clusterIp);
  const places: FrontendPlace[] = [{ kind: 'clusterIP', address: clusterIp, port: port.port }];
  const add = (kind: Frontend['kind'], addresses: readonly IpAddress[]): void => {
    for (const address of addresses) {
      if (places.some((place) => place.address === address)) continue;
      const ipMode = kind === 'loadBalancerIP' ? oddIpMode(service, address, routerIpMode) : undefined;
      places.push({ kind, address, port: port.port, ...(ipMode === undefined ? {} : { ipMode }) });
    }
  };
  add('loadBalancerIP', capturedLoadBalancerIps(service, ipFamily));
  if (externalIps === 'forward') add('externalIP', ofFamily(service.externalIps, ipFamily));
  if (port.nodePort !== undefined) {
    places.push({ kind: 'nodePort', address: 'anyNodePortAddress', port: port.nodePort });
  }
  return places;
}

/** Whether only endpoints on this node may answer at a place (ipMode `Router`). */
export function isRouterPlace({ ipMode }: FrontendPlace): boolean {
  return ipMode?.takenAs === 'Router';
}

/**
 * The `ipMode` of a captured load-balancer IP; undefined for `VIP`. An IP that the status lists more than once is a
 * `Router` only if all its captured entries say so.
 */
function oddIpMode(
  { loadBalancerIngress }: ServiceRecord,
  address: IpAddress,
  routerIpMode: FrontendChoice['routerIpMode'],
): OddIpMode | undefined {
  const modes = loadBalancerIngress.flatMap(({ ip, ipMode }) => (ip === address && ipMode !== 'Proxy' ? [ipMode] : []));
  if (modes.includes('VIP')) return undefined;
  const written = modes.find((mode) => mode !== 'Router') ?? 'Router';
  return { written, takenAs: written === 'Router' && routerIpMode === 'localOnly' ? 'Router' : 'VIP' };
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
