import { isEqual } from '../equal.ts';
import { type IpAddress, ipFamilyOf } from '../ip/address.ts';
import { cidrFamilyOf } from '../ip/cidr.ts';
import type { EndpointSliceRecord } from '../records/endpoint-slice.ts';
import { type ServiceKey, servicePortKey } from '../records/keys.ts';
import type { ServicePortRecord, ServiceRecord, TrafficPolicy } from '../records/service.ts';
import { decide, type PolicyInput, routerDecisions } from '../policy/decide.ts';
import {
  capturedLoadBalancerIps,
  effectiveExternalPolicy,
  type FrontendPlace,
  frontendPlaces,
  healthCheckPort,
  isExternallyReachable,
  isRouterPlace,
} from '../policy/frontends.ts';
import { proxiedService } from '../policy/proxied-services.ts';
import { hasUsableEndpoint, selectEndpoints } from '../policy/select-endpoints.ts';
import { allowedSources } from '../policy/source-ranges.ts';
import { type NodePlace, topologyMode } from '../policy/topology.ts';
import type { ClusterStateView, TableOptions } from './build-table-types.ts';
import type {
  Endpoint,
  Frontend,
  HealthCheck,
  LostFrontend,
  RoutedPlace,
  ServiceForwarding,
} from './forwarding-table.ts';
import {
  type EndpointSource,
  EndpointSources,
  isLocalTo,
  isUsableAddress,
  mergeSources,
  portKey,
} from './merge-endpoints.ts';
import { finish, type Steps } from './steps.ts';

/** What every Service of one build shares. */
export interface BuildContext {
  readonly state: ClusterStateView;
  readonly options: TableOptions;
  readonly here: NodePlace;
  /** Our Node's primary address of the table's family, if known. */
  readonly nodeIp: IpAddress | undefined;
  /** Whether the kernel can tell pods from others in this family. */
  readonly canDetectPods: boolean;
}

/** What one Service adds to a table, before frontends that several Services claim are settled. */
export interface BuiltService {
  readonly ports: readonly ServiceForwarding[];
  readonly healthCheck: HealthCheck | undefined;
}

const noEndpoints: readonly Endpoint[] = [];
const nothingLost: readonly LostFrontend[] = [];
/** Units of work (`Steps`) of a Service port besides its endpoints; an endpoint is one. */
export const unitsPerPort = 4;

/** Reads from state what a build needs besides the Services themselves. */
export function buildContext(state: ClusterStateView, given: TableOptions): BuildContext {
  const options = withOwnFamily(given);
  const node = options.nodeName === '' ? undefined : state.nodes.get(options.nodeName);
  const detector = options.podDetector;
  return {
    state,
    options,
    here: { name: options.nodeName, zone: node?.zone ?? '' },
    nodeIp: options.nodeIp ?? node?.addresses.find((address) => ipFamilyOf(address) === options.ipFamily),
    canDetectPods: detector.kind !== 'none',
  };
}

/** A pod detector for the other family detects nothing in this one. */
function withOwnFamily(options: TableOptions): TableOptions {
  const { podDetector: detector, ipFamily } = options;
  const isOther = detector.kind === 'cidr' && cidrFamilyOf(detector.cidr) !== ipFamily;
  return isOther ? { ...options, podDetector: { kind: 'none' } } : options;
}

/** Everything one Service contributes to the table of one family; empty if it is not ours or not there. */
export function buildService(key: ServiceKey, context: BuildContext): BuiltService {
  return finish(prepareService(key, context, undefined));
}

/** A Service built for a table that is not there yet. */
export interface PreparedService extends BuiltService {
  readonly service: ServiceRecord | undefined;
  readonly context: BuildContext;
  /** Inputs and result of each port, by `portKey`. */
  readonly parts: ReadonlyMap<string, PreparedPort>;
}

interface PreparedPort {
  readonly sources: readonly EndpointSource[];
  readonly forwarding: ServiceForwarding;
}

const noParts: PreparedService['parts'] = new Map();

/**
 * The same in steps, from the slices as they are when it begins. Ports of `previous`, a version for the same family, stay
 * the same objects if what they were built from did.
 */
export function* prepareService(
  key: ServiceKey,
  context: BuildContext,
  previous: PreparedService | undefined,
): Steps<PreparedService> {
  const service = context.state.services.get(key);
  const nothing = { service, context, ports: [], healthCheck: undefined, parts: noParts };
  if (service === undefined) return nothing;
  const proxied = proxiedService(service, context.options.ipFamily);
  if (proxied.status === 'skipped') return nothing;
  const slices: EndpointSliceRecord[] = [];
  for (const slice of context.state.slicesOf(key)) {
    if (slice.ipFamily === context.options.ipFamily) slices.push(slice);
  }
  const sources = new EndpointSources(slices);
  const known = previous?.service === service && isSameContext(previous.context, context) ? previous.parts : noParts;
  const parts = new Map<string, PreparedPort>();
  for (const port of service.ports) {
    const id = portKey(port);
    if (parts.has(id)) continue; // the API forbids repeats, a file may have them: the first wins
    const [before, own] = [known.get(id), sources.of(port)];
    parts.set(
      id,
      before !== undefined && areSameSources(before.sources, own)
        ? before
        : {
            sources: own,
            forwarding: yield* buildPort({ service, port, clusterIp: proxied.clusterIp, sources: own }, context),
          },
    );
  }
  const healthPort = healthCheckPort(service);
  const healthCheck =
    healthPort === undefined
      ? undefined
      : { service: key, port: healthPort, localReadyEndpoints: countLocalReady(slices, context.here) };
  return { service, context, ports: [...parts.values()].map(({ forwarding }) => forwarding), healthCheck, parts };
}

function areSameSources(a: readonly EndpointSource[], b: readonly EndpointSource[]): boolean {
  return (
    a.length === b.length && a.every(({ slice, port }, index) => slice === b[index]?.slice && port === b[index].port)
  );
}

/** Whether two contexts, of one state, lead to the same result for the same Service and slices. */
function isSameContext(a: BuildContext, b: BuildContext): boolean {
  return isEqual({ ...a, state: undefined }, { ...b, state: undefined });
}

interface PortInput {
  readonly service: ServiceRecord;
  readonly port: ServicePortRecord;
  readonly clusterIp: IpAddress;
  readonly sources: readonly EndpointSource[];
}

function* buildPort({ service, port, clusterIp, sources }: PortInput, context: BuildContext): Steps<ServiceForwarding> {
  const { here, options } = context;
  const { externalIps, routerIpMode = 'asVip' } = options;
  const places = frontendPlaces(service, port, { clusterIp, externalIps, routerIpMode });
  const policies = { internal: service.internalTrafficPolicy, external: effectiveExternalPolicy(service, places) };
  const routerPlaces = places.filter(isRouterPlace);
  const otherPlaces = routerPlaces.length === 0 ? places : places.filter((place) => !isRouterPlace(place));
  const usesCluster = policies.internal === 'Cluster' || isExternallyReachable(otherPlaces);
  const usesLocal = policies.internal === 'Local' || policies.external === 'Local' || routerPlaces.length > 0;
  const known = yield* mergeSources(sources, here.name);
  const select = (policy: TrafficPolicy): readonly Endpoint[] =>
    selectEndpoints(known, policy, { here, terminatingFallback: options.terminatingFallback });
  const endpoints = {
    Cluster: usesCluster ? select('Cluster') : noEndpoints,
    Local: usesLocal ? select('Local') : noEndpoints,
  };
  const decideFrontend = decisionsFor({
    internalTrafficPolicy: policies.internal,
    externalTrafficPolicy: policies.external,
    endpoints,
    hasAnyEndpoints: hasUsableEndpoint(known, options.terminatingFallback),
    masqueradeAll: options.masqueradeAll,
    canDetectPods: context.canDetectPods,
  });
  const allowed = allowedSources({
    ipFamily: options.ipFamily,
    ranges: service.loadBalancerSourceRanges,
    vips: capturedLoadBalancerIps(service, options.ipFamily),
    nodeIp: context.nodeIp,
  });
  yield unitsPerPort;
  const isRouted = routerPlaces.length > 0 && endpoints.Local.length === 0;
  return {
    key: servicePortKey(service.key, port.name, port.protocol),
    service: service.key,
    protocol: port.protocol,
    frontends: (isRouted ? otherPlaces : places).map((place) => {
      const { kind } = place;
      return {
        ...place,
        decisions: decideFrontend(place),
        allowedSources: kind === 'loadBalancerIP' ? allowed : 'any',
      };
    }),
    lostFrontends: nothingLost,
    ...(isRouted ? { leftToRoute: routerPlaces.map(routedPlace) } : {}),
    endpoints,
    knownEndpoints: known,
    policies,
    topology: usesCluster ? topologyMode(known, here) : 'none',
    sessionAffinity: service.sessionAffinity,
  };
}

function routedPlace({ kind, address, port }: FrontendPlace): RoutedPlace {
  return { kind, address, port };
}

/** Decisions per kind of frontend, shared by the frontends to which the same rules apply. */
function decisionsFor(input: PolicyInput): (place: FrontendPlace) => Frontend['decisions'] {
  const all = (kind: Frontend['kind']): Frontend['decisions'] => ({
    pod: decide(kind, 'pod', input),
    node: decide(kind, 'node', input),
    outside: decide(kind, 'outside', input),
  });
  const external = all('nodePort');
  return (place) => {
    if (isRouterPlace(place)) return routerDecisions;
    return place.kind === 'clusterIP' ? all(place.kind) : external;
  };
}

/** Distinct local ready addresses in slices that have any usable port; `ready` alone is asked (KEP-1669). */
function countLocalReady(slices: readonly EndpointSliceRecord[], here: NodePlace): number {
  const addresses = new Set<IpAddress>();
  for (const slice of slices) {
    if (slice.ports.length === 0) continue;
    for (const endpoint of slice.endpoints) {
      if (endpoint.ready && isLocalTo(endpoint.nodeName, here.name) && isUsableAddress(endpoint, slice)) {
        addresses.add(endpoint.address);
      }
    }
  }
  return addresses.size;
}
