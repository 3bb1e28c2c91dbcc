import { wrongArgument, assertNever } from '../../base/argument.ts';
import type {
  TableOptions,
  Decision,
  Endpoint,
  Frontend,
  OddIpMode,
  SourceClass,
  TopologyMode,
} from '../forwarding/forwarding-table.ts';
import { type IpAddress, type IpFamily, compareIps, ipFamilyOf, requireIpFamily } from '../ip/address.ts';
import { type Cidr, cidrContains, cidrFamilyOf, hostCidr, isEverything } from '../ip/cidr.ts';
import type { NodeName } from '../records/keys.ts';
import type { ServicePortRecord, ServiceRecord, TrafficPolicy } from '../records/records.ts';

/** Input of the decisions for one Service port. */
export interface PolicyInput {
  readonly internalTrafficPolicy: TrafficPolicy;
  readonly externalTrafficPolicy: TrafficPolicy;
  readonly endpoints: Readonly<Record<TrafficPolicy, readonly Endpoint[]>>;
  /** Usable anywhere in the cluster, under any policy. */
  readonly hasAnyEndpoints: boolean;
  /** Applies to cluster IPs only. */
  readonly masqueradeAll: boolean;
  readonly canDetectPods: boolean;
}

const reject: Decision = { kind: 'reject' };
const drop: Decision = { kind: 'drop' };
/** Decisions are few and frozen by type; sharing them keeps 10,000 services small. */
const forward: Readonly<Record<TrafficPolicy, { readonly plain: Decision; readonly masqueraded: Decision }>> = {
  Cluster: {
    plain: { kind: 'forward', to: 'Cluster', masquerade: false },
    masqueraded: { kind: 'forward', to: 'Cluster', masquerade: true },
  },
  Local: {
    plain: { kind: 'forward', to: 'Local', masquerade: false },
    masqueraded: { kind: 'forward', to: 'Local', masquerade: true },
  },
};

/**
 * Decisions of a load-balancer IP with ipMode `Router`, which is a frontend only while this node has an endpoint to
 * forward to. The endpoint is here, so its answer comes back through this node and no sender is masqueraded.
 */
export const routerDecisions: Frontend['decisions'] = {
  pod: forward.Local.plain,
  node: forward.Local.plain,
  outside: forward.Local.plain,
};

/** The one place where forward, reject, drop and masquerade are decided for all other frontends (kube-proxy facts 7 to 10). */
export function decide(kind: Frontend['kind'], source: SourceClass, input: PolicyInput): Decision {
  if (kind === 'clusterIP') {
    const masquerade = input.masqueradeAll || (input.canDetectPods && source !== 'pod');
    return route(input, input.internalTrafficPolicy, masquerade);
  }
  if (input.externalTrafficPolicy === 'Cluster') return route(input, 'Cluster', true);
  switch (source) {
    case 'pod':
      return route(input, input.canDetectPods ? 'Cluster' : 'Local', false); // short circuit
    case 'node':
      return route(input, 'Cluster', true); // short circuit
    case 'outside':
      return route(input, 'Local', false);
    default:
      return assertNever(source);
  }
}

function route(input: PolicyInput, to: TrafficPolicy, masquerade: boolean): Decision {
  if (!input.hasAnyEndpoints) return reject;
  if (input.endpoints[to].length === 0) return drop;
  return masquerade ? forward[to].masqueraded : forward[to].plain;
}

/** Input of a selection besides the endpoints. */
export interface SelectionContext {
  readonly here: NodePlace;
  /** `off` is Kubernetes <= 1.25: terminating endpoints are never used. */
  readonly terminatingFallback: 'on' | 'off';
}

/**
 * Endpoints a policy may use from this node, in the order given (callers pass them sorted by address).
 *
 * Ready endpoints first, narrowed by topology hints for `Cluster` only; if no endpoint is ready,
 * those still serving while terminating (KEP-1669), for which hints do not count. `Cluster` and
 * `Local` fall back independently. An empty result means "nothing usable", never "not computed".
 * Returns `all` itself when nothing is left out. Throws `UsageError` without a list or a context.
 */
export function selectEndpoints(
  all: readonly Endpoint[],
  policy: TrafficPolicy,
  context: SelectionContext,
): readonly Endpoint[] {
  if (!Array.isArray(all)) throw wrongArgument('selectEndpoints: all', 'a list', all);
  if (context?.here === undefined) throw wrongArgument('selectEndpoints: context.here', 'a node', context?.here);
  const mode = policy === 'Cluster' ? topologyMode(all, context.here) : 'none';
  const candidates = policy === 'Local' ? keep(all, (endpoint) => endpoint.isLocal) : all;
  const ready = keep(candidates, (endpoint) => endpoint.ready && matchesTopology(endpoint, mode, context.here));
  if (ready.length > 0 || context.terminatingFallback === 'off') return ready;
  return keep(candidates, canServeWhileTerminating);
}

/** Whether any endpoint is usable anywhere in the cluster, under any policy. */
export function hasUsableEndpoint(all: readonly Endpoint[], terminatingFallback: 'on' | 'off'): boolean {
  return all.some((endpoint) => endpoint.ready || (terminatingFallback === 'on' && canServeWhileTerminating(endpoint)));
}

/** Whether an endpoint can be used when no ready one exists. */
export function canServeWhileTerminating(endpoint: Endpoint): boolean {
  return endpoint.serving && endpoint.terminating;
}

/** `filter` that returns its input when it keeps everything, so that equal sets share one array. */
function keep(endpoints: readonly Endpoint[], test: (endpoint: Endpoint) => boolean): readonly Endpoint[] {
  return endpoints.every(test) ? endpoints : endpoints.filter(test);
}

/** Where this node is. An empty zone means that the Node carries no zone label. */
export interface NodePlace {
  readonly name: NodeName;
  readonly zone: string;
}

/**
 * How hints narrow the `Cluster` set here (KEP-2433, KEP-3015). A kind of hint applies only if every
 * ready endpoint carries it and at least one names this node or zone; node hints are tried first.
 * The Service's annotation and `trafficDistribution` do not matter: the controller that writes hints has applied them.
 */
export function topologyMode(endpoints: readonly Endpoint[], here: NodePlace): TopologyMode {
  const ready = endpoints.filter((endpoint) => endpoint.ready);
  if (hintsApply(ready, (endpoint) => endpoint.nodeHints, here.name)) return 'sameNode';
  return hintsApply(ready, (endpoint) => endpoint.zoneHints, here.zone) ? 'sameZone' : 'none';
}

function matchesTopology(endpoint: Endpoint, mode: TopologyMode, here: NodePlace): boolean {
  if (mode === 'sameNode') return endpoint.nodeHints.includes(here.name);
  return mode === 'none' || endpoint.zoneHints.includes(here.zone);
}

function hintsApply(
  ready: readonly Endpoint[],
  hintsOf: (endpoint: Endpoint) => readonly string[],
  wanted: string,
): boolean {
  let isNamed = false;
  for (const endpoint of ready) {
    const hints = hintsOf(endpoint);
    if (hints.length === 0) return false;
    isNamed ||= hints.includes(wanted);
  }
  return isNamed;
}

/** A frontend without its decisions. */
export type FrontendPlace = Pick<Frontend, 'kind' | 'address' | 'port' | 'ipMode'>;

/**
 * Load-balancer IPs of a family that this node captures, sorted, each once. `Proxy` leaves an address to its load
 * balancer (KEP-1860). The API does not say what an unknown mode means; it captures, so that an address never loses its
 * rules on the day a newer API server adds a mode. The Service's type does not matter: a controller writes working
 * addresses to the status. Includes IPs with mode `Router`; `frontendPlaces` decides how to treat them.
 */
export function capturedLoadBalancerIps(service: ServiceRecord, ipFamily: IpFamily): readonly IpAddress[] {
  const captured = service.loadBalancerIngress.filter((ingress) => ingress.ipMode !== 'Proxy');
  return ofFamily(
    captured.map((ingress) => ingress.ip),
    ipFamily,
  );
}

interface FrontendChoice {
  /** Its family is that of all frontends. */
  readonly clusterIp: IpAddress;
  readonly externalIps: TableOptions['externalIps'];
  readonly routerIpMode: NonNullable<TableOptions['routerIpMode']>;
}

/**
 * The places at which one Service port answers in a family: cluster IP, load-balancer IPs, external IPs, NodePort. An
 * address that plays two roles is listed once, in the first; so an external IP that is also a load-balancer IP keeps
 * its source ranges. External IPs may be switched off (feature gate `AllowServiceExternalIPs`).
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
 * leftover `Local`, which has no meaning; nor has it for a port that is not reachable from outside.
 */
export function effectiveExternalPolicy(service: ServiceRecord, places: readonly FrontendPlace[]): TrafficPolicy {
  return hasExternalTraffic(service) && isExternallyReachable(places) ? service.externalTrafficPolicy : 'Cluster';
}

/** Returns the port of the health check server that the Service needs on every node, if any. */
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

/**
 * Returns the cluster IP by which the proxy forwards a Service in one family; undefined if it does not. ExternalName is skipped
 * even if a cluster IP lingers; the label `service.kubernetes.io/service-proxy-name` with any value hands the Service to another
 * proxy; a Service without a cluster IP of this family does not exist in this family, even if it has other addresses of the family.
 */
export function proxiedClusterIp(service: ServiceRecord, ipFamily: IpFamily): IpAddress | undefined {
  const { type, isHeadless, serviceProxyName, ipFamilies, clusterIps } = service;
  if (type === 'ExternalName' || isHeadless || serviceProxyName !== undefined) return undefined;
  return ipFamilies.includes(ipFamily) ? clusterIps.find((ip) => ipFamilyOf(ip) === ipFamily) : undefined;
}

/** The fields that decide which sources may reach a Service's load-balancer IPs. */
export interface SourceRangesInput {
  readonly ipFamily: IpFamily;
  /** `loadBalancerSourceRanges`, both families. */
  readonly ranges: readonly Cidr[];
  /** The load-balancer IPs of this family that are captured. */
  readonly vips: readonly IpAddress[];
  /** Our Node's primary address of this family, if known. */
  readonly nodeIp: IpAddress | undefined;
}

/**
 * Sources that may use a Service's load-balancer IPs, sorted; `any` if there is no range of this
 * family, or one that covers it.
 *
 * If a range contains this node's own address, the VIPs themselves are allowed too: where a VIP is
 * also an address of the node, the node's own requests to it carry the VIP as their source. Throws `UsageError` for
 * what is no CIDR or address.
 */
export function allowedSources(input: SourceRangesInput): 'any' | readonly Cidr[] {
  if (!Array.isArray(input?.ranges)) throw wrongArgument('allowedSources: input.ranges', 'a list', input?.ranges);
  if (!Array.isArray(input.vips)) throw wrongArgument('allowedSources: input.vips', 'a list', input.vips);
  requireIpFamily('allowedSources: input.ipFamily', input.ipFamily);
  const ranges = input.ranges.filter((range) => cidrFamilyOf(range) === input.ipFamily);
  if (ranges.length === 0 || ranges.some(isEverything)) return 'any';
  const { nodeIp } = input;
  const allowsNode = nodeIp !== undefined && ranges.some((range) => cidrContains(range, nodeIp));
  return [...new Set(allowsNode ? [...ranges, ...input.vips.map(hostCidr)] : ranges)].sort();
}
