import { objectArgument, requireList } from '../../base/argument.ts';
import { sortInSteps, finish, type Steps } from '../../base/steps.ts';
import { isEqual, compareTexts } from '../../base/values.ts';
import type {
  ClusterStateView,
  TableOptions,
  Endpoint,
  Frontend,
  HealthCheck,
  LostFrontend,
  ServiceForwarding,
} from './forwarding-table.ts';
import { type IpAddress, compareIps, ipFamilyOf } from '../ip/address.ts';
import { cidrFamilyOf } from '../ip/cidr.ts';
import type { Port } from '../ip/port.ts';
import {
  type FrontendPlace,
  type NodePlace,
  type PolicyInput,
  allowedSources,
  capturedLoadBalancerIps,
  decide,
  effectiveExternalPolicy,
  frontendPlaces,
  hasUsableEndpoint,
  healthCheckPort,
  isExternallyReachable,
  isRouterPlace,
  proxiedClusterIp,
  routerDecisions,
  selectEndpoints,
  topologyMode,
} from '../policy/decide.ts';
import type {
  EndpointRecord,
  EndpointSliceRecord,
  ServicePortRecord,
  ServiceRecord,
  TrafficPolicy,
} from '../records/records.ts';
import { type NodeName, type ServiceKey, servicePortKey } from '../records/keys.ts';

/** Inputs that all Services of one build share. */
export interface BuildContext {
  readonly state: ClusterStateView;
  readonly options: TableOptions;
  readonly here: NodePlace;
  /** Primary address of this agent's Node in the table's family, if known. */
  readonly nodeIp: IpAddress | undefined;
  /** Whether the kernel can detect pods in this family. */
  readonly canDetectPods: boolean;
}

/** Parts of a table from one Service, before claims of several Services to one frontend are resolved. */
export interface BuiltService {
  readonly ports: readonly ServiceForwarding[];
  readonly healthCheck: HealthCheck | undefined;
}

const noEndpoints: readonly Endpoint[] = [];
const nothingLost: readonly LostFrontend[] = [];
/** Units of work (`Steps`) of a Service port besides its endpoints; an endpoint is one. */
export const unitsPerPort = 4;

/** Reads the inputs of a build other than the Services from the state. */
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

/** Returns the parts of a table from one Service; empty if the proxy does not forward it or it does not exist. */
export function buildService(key: ServiceKey, context: BuildContext): BuiltService {
  return finish(prepareService(key, context, undefined));
}

/** A Service built for a future table. */
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
 * The same in steps, from the slices at its start. Ports of `previous`, a version for the same family, stay the same objects
 * if their inputs are the same.
 */
export function* prepareService(
  key: ServiceKey,
  context: BuildContext,
  previous: PreparedService | undefined,
): Steps<PreparedService> {
  const service = context.state.services.get(key);
  const nothing = { service, context, ports: [], healthCheck: undefined, parts: noParts };
  if (service === undefined) return nothing;
  const clusterIp = proxiedClusterIp(service, context.options.ipFamily);
  if (clusterIp === undefined) return nothing;
  const slices: EndpointSliceRecord[] = [];
  for (const slice of context.state.slicesOf(key)) {
    if (slice.ipFamily === context.options.ipFamily) slices.push(slice);
  }
  const sources = sourcesByPort(slices);
  const known = previous?.service === service && isSameContext(previous.context, context) ? previous.parts : noParts;
  const parts = new Map<string, PreparedPort>();
  for (const port of service.ports) {
    const id = portKey(port);
    if (parts.has(id)) continue; // the API forbids repeated ports, a file may have them: the first wins
    const [before, own] = [known.get(id), sources.get(id) ?? noSources];
    parts.set(
      id,
      before !== undefined && areSameSources(before.sources, own)
        ? before
        : {
            sources: own,
            forwarding: yield* buildPort({ service, port, clusterIp, sources: own }, context),
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
    ...(isRouted
      ? { leftToRoute: routerPlaces.map(({ kind, address, port: at }) => ({ kind, address, port: at })) }
      : {}),
    endpoints,
    knownEndpoints: known,
    policies,
    topology: usesCluster ? topologyMode(known, here) : 'none',
    sessionAffinity: service.sessionAffinity,
  };
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

/** Counts distinct local addresses in slices with a usable port. Only `ready` matters (KEP-1669). */
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

/** A port of a slice: its endpoints serve a Service port at this number. */
interface EndpointSource {
  readonly slice: EndpointSliceRecord;
  readonly port: Port;
}

/**
 * Returns slice ports by the name and protocol that they share with a Service port, in the order of the slices. Costs time in
 * proportion to the ports of the slices.
 */
function sourcesByPort(slices: readonly EndpointSliceRecord[]): ReadonlyMap<string, readonly EndpointSource[]> {
  const byPort = new Map<string, EndpointSource[]>();
  for (const slice of slices) {
    for (const port of slice.ports) {
      const key = portKey(port);
      const source = { slice, port: port.port };
      const sources = byPort.get(key);
      if (sources === undefined) byPort.set(key, [source]);
      else sources.push(source);
    }
  }
  return byPort;
}

const noSources: readonly EndpointSource[] = [];

/** Name and protocol, which a Service port shares with its slice ports. */
type PortIdentity = Pick<ServicePortRecord, 'name' | 'protocol'>;

function portKey({ name, protocol }: PortIdentity): string {
  return `${name}/${protocol}`;
}

/**
 * Returns every endpoint that the slices name for one Service port, sorted by address then port, each pair once.
 *
 * Slice ports are matched by name and protocol, slice by slice: one Service port may lead to different
 * numbers on different endpoints. `slices` are those of the table's family. Throws `UsageError` without slices or a port.
 */
export function mergeEndpoints(
  slices: readonly EndpointSliceRecord[],
  servicePort: PortIdentity,
  here: NodeName,
): readonly Endpoint[] {
  requireList('mergeEndpoints: slices', slices);
  objectArgument('mergeEndpoints: servicePort', servicePort);
  return finish(mergeSources(sourcesByPort(slices).get(portKey(servicePort)) ?? noSources, here));
}

/** The same from the sources of one Service port, in steps. */
function* mergeSources(sources: readonly EndpointSource[], here: NodeName): Steps<readonly Endpoint[]> {
  const endpoints: Endpoint[] = [];
  for (const { slice, port } of sources) {
    for (const record of slice.endpoints) {
      if (isUsableAddress(record, slice)) endpoints.push(endpointOf(record, port, here));
    }
    yield slice.endpoints.length;
  }
  return withoutDuplicates(yield* sortInSteps(endpoints, compareEndpoints));
}

/** Whether an endpoint's address is of its slice's family; the API ensures it, a file may violate it. */
function isUsableAddress(record: EndpointRecord, slice: EndpointSliceRecord): boolean {
  return ipFamilyOf(record.address) === slice.ipFamily;
}

/** Whether an endpoint on `nodeName` is on this node; false if the name of this node is empty. */
function isLocalTo(nodeName: NodeName | undefined, here: NodeName): boolean {
  return here !== '' && nodeName === here;
}

function endpointOf(record: EndpointRecord, port: Port, here: NodeName): Endpoint {
  return {
    address: record.address,
    port,
    isLocal: isLocalTo(record.nodeName, here),
    nodeName: record.nodeName,
    ready: record.ready,
    serving: record.serving,
    terminating: record.terminating,
    zoneHints: record.zoneHints,
    nodeHints: record.nodeHints,
  };
}

function compareEndpoints(a: Endpoint, b: Endpoint): number {
  return compareIps(a.address, b.address) || a.port - b.port || compareDuplicates(a, b);
}

/**
 * Chooses between two entries for one address and port: while an endpoint moves between slices, both name it. Not
 * terminating wins over terminating, as in kube-proxy. Otherwise the choice depends on the contents alone: ready, serving,
 * local, then the texts.
 */
function compareDuplicates(a: Endpoint, b: Endpoint): number {
  return (
    Number(a.terminating) - Number(b.terminating) ||
    Number(b.ready) - Number(a.ready) ||
    Number(b.serving) - Number(a.serving) ||
    Number(b.isLocal) - Number(a.isLocal) ||
    compareTexts(a.nodeName ?? '', b.nodeName ?? '') ||
    compareTexts(a.zoneHints.join(), b.zoneHints.join()) ||
    compareTexts(a.nodeHints.join(), b.nodeHints.join())
  );
}

function withoutDuplicates(sorted: readonly Endpoint[]): readonly Endpoint[] {
  const isRepeat = (endpoint: Endpoint, index: number): boolean => {
    const before = sorted[index - 1];
    return before?.address === endpoint.address && before.port === endpoint.port;
  };
  return sorted.some(isRepeat) ? sorted.filter((endpoint, index) => !isRepeat(endpoint, index)) : sorted;
}
