import { type IpAddress, ipFamilyOf } from '../ip/address.ts';
import type { EndpointSliceRecord } from '../records/endpoint-slice.ts';
import { type ServiceKey, servicePortKey } from '../records/keys.ts';
import type { ServicePortRecord, ServiceRecord, TrafficPolicy } from '../records/service.ts';
import { decide, type PolicyInput } from '../policy/decide.ts';
import {
  capturedLoadBalancerIps,
  effectiveExternalPolicy,
  frontendPlaces,
  healthCheckPort,
  isExternallyReachable,
} from '../policy/frontends.ts';
import { proxiedService } from '../policy/proxied-services.ts';
import { hasUsableEndpoint, selectEndpoints } from '../policy/select-endpoints.ts';
import { allowedSources } from '../policy/source-ranges.ts';
import { type NodePlace, topologyMode } from '../policy/topology.ts';
import type { ClusterStateView, TableOptions } from './build-table-types.ts';
import type { Endpoint, Frontend, HealthCheck, LostFrontend, ServiceForwarding } from './forwarding-table.ts';
import { isLocalTo, isUsableAddress, mergeEndpoints } from './merge-endpoints.ts';

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

const nothing: BuiltService = { ports: [], healthCheck: undefined };
const noEndpoints: readonly Endpoint[] = [];
const nothingLost: readonly LostFrontend[] = [];

/** Reads from state what a build needs besides the Services themselves. */
export function buildContext(state: ClusterStateView, options: TableOptions): BuildContext {
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

/** Everything one Service contributes to the table of one family; empty if it is not ours or not there. */
export function buildService(key: ServiceKey, context: BuildContext): BuiltService {
  const service = context.state.services.get(key);
  if (service === undefined) return nothing;
  const proxied = proxiedService(service, context.options.ipFamily);
  if (proxied.status === 'skipped') return nothing;
  const slices: EndpointSliceRecord[] = [];
  for (const slice of context.state.slicesOf(key)) {
    if (slice.ipFamily === context.options.ipFamily) slices.push(slice);
  }
  const ports = distinctPorts(service.ports).map((port) =>
    buildPort({ service, port, clusterIp: proxied.clusterIp, slices }, context),
  );
  const port = healthCheckPort(service);
  const healthCheck =
    port === undefined ? undefined : { service: key, port, localReadyEndpoints: countLocalReady(slices, context.here) };
  return { ports, healthCheck };
}

interface PortInput {
  readonly service: ServiceRecord;
  readonly port: ServicePortRecord;
  readonly clusterIp: IpAddress;
  readonly slices: readonly EndpointSliceRecord[];
}

function buildPort({ service, port, clusterIp, slices }: PortInput, context: BuildContext): ServiceForwarding {
  const { here, options } = context;
  const places = frontendPlaces(service, port, { clusterIp, externalIps: options.externalIps });
  const policies = { internal: service.internalTrafficPolicy, external: effectiveExternalPolicy(service, places) };
  const usesCluster = policies.internal === 'Cluster' || isExternallyReachable(places);
  const usesLocal = policies.internal === 'Local' || policies.external === 'Local';
  const known = mergeEndpoints(slices, port, here.name);
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
  const sources = allowedSources({
    ipFamily: options.ipFamily,
    ranges: service.loadBalancerSourceRanges,
    vips: capturedLoadBalancerIps(service, options.ipFamily),
    nodeIp: context.nodeIp,
  });
  return {
    key: servicePortKey(service.key, port.name, port.protocol),
    service: service.key,
    protocol: port.protocol,
    frontends: places.map(({ kind, address, port: number }) => ({
      kind,
      address,
      port: number,
      decisions: decideFrontend(kind),
      allowedSources: kind === 'loadBalancerIP' ? sources : 'any',
    })),
    lostFrontends: nothingLost,
    endpoints,
    knownEndpoints: known,
    policies,
    topology: usesCluster ? topologyMode(known, here) : 'none',
    sessionAffinity: service.sessionAffinity,
  };
}

/** Decisions per kind of frontend, shared by the frontends to which the same rules apply. */
function decisionsFor(input: PolicyInput): (kind: Frontend['kind']) => Frontend['decisions'] {
  const all = (kind: Frontend['kind']): Frontend['decisions'] => ({
    pod: decide(kind, 'pod', input),
    node: decide(kind, 'node', input),
    outside: decide(kind, 'outside', input),
  });
  const external = all('nodePort');
  return (kind) => (kind === 'clusterIP' ? all(kind) : external);
}

/** A name and protocol identify a port; the API forbids repeats, a file may have them: the first wins. */
function distinctPorts(ports: readonly ServicePortRecord[]): readonly ServicePortRecord[] {
  return ports.filter(
    (port, index) => ports.findIndex((other) => other.name === port.name && other.protocol === port.protocol) === index,
  );
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
