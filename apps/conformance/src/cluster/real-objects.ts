import type { V1EndpointSlice, V1Service, V1ServicePort } from '@kubernetes/client-node';
import type { IpAddress, IpFamily } from '@switchyard/core';
import { clusterObjects, familiesOf, type ScenarioService } from '@switchyard/scenarios';
import type { ScenarioMoment } from '../model/bed.ts';
import type { AddressBook } from './address-book.ts';
import type { NodePair } from './choose-nodes.ts';
import { loadBalancerClass, runLabel } from './cluster-options.ts';
import { type EchoPool, realPort } from './echo-pool.ts';
import type { TrafficPod } from './start-pods.ts';

/** With what scenarios are translated. */
export interface Translation {
  readonly book: AddressBook;
  readonly pool: EchoPool;
  readonly nodes: NodePair;
  readonly namespace: string;
  readonly run: string;
  /** The pod that sends as `pod`. */
  readonly client: TrafficPod;
}

/** A Service to be written, with the scenario's own words for what the API server hands out. */
export interface WantedService {
  readonly service: ScenarioService;
  readonly object: V1Service;
  /** `status.loadBalancer.ingress`; empty: none. */
  readonly ingress: readonly { readonly ip: string; readonly ipMode?: string }[];
}

/** `shop/cart` is `shop-cart` in the namespace of the run. */
export function realName(key: string): string {
  return key.replace('/', '-');
}

/** The Services of a moment. What was handed out before is asked for again; the rest is for the API server to choose. */
export function realServices({ scenario, state }: ScenarioMoment, how: Translation): readonly WantedService[] {
  const families = familiesOf(scenario);
  return [...state.services.values()].map((service) => ({
    service,
    object: realService(service, families, how),
    ingress: service.loadBalancerIPs.map(({ ip, ipMode }) => (ipMode === undefined ? { ip } : { ip, ipMode })),
  }));
}

function realService(service: ScenarioService, families: readonly IpFamily[], how: Translation): V1Service {
  const { type, externalTrafficPolicy, externalIPs, healthCheckNodePort, sessionAffinityTimeoutSeconds } = service;
  const metadata = { name: realName(service.name), namespace: how.namespace, labels: labelsOf(service.labels, how) };
  const common = { apiVersion: 'v1', kind: 'Service', metadata };
  if (type === 'ExternalName') return { ...common, spec: { type, externalName: 'nowhere.invalid' } };
  const isExternal = type === 'NodePort' || type === 'LoadBalancer' || externalIPs.length > 0;
  const healthPort = healthCheckNodePort === undefined ? undefined : how.book.healthPort(healthCheckNodePort);
  return {
    ...common,
    spec: {
      type,
      ...clusterIpsOf(service, how.book),
      ipFamilies: [...families],
      ipFamilyPolicy: families.length > 1 ? 'RequireDualStack' : 'SingleStack',
      ports: service.ports.map((port) => realServicePort(port, how.book)),
      internalTrafficPolicy: service.internalTrafficPolicy,
      ...(isExternal ? { externalTrafficPolicy } : {}),
      ...(externalIPs.length > 0 ? { externalIPs: [...externalIPs] } : {}),
      ...(type === 'LoadBalancer' ? { loadBalancerClass, ...sourceRangesOf(service, how) } : {}),
      ...(healthPort === undefined ? {} : { healthCheckNodePort: healthPort }),
      ...(sessionAffinityTimeoutSeconds === undefined
        ? { sessionAffinity: 'None' }
        : {
            sessionAffinity: 'ClientIP',
            sessionAffinityConfig: { clientIP: { timeoutSeconds: sessionAffinityTimeoutSeconds } },
          }),
    },
  };
}

function labelsOf(own: Readonly<Record<string, string>>, { run }: Translation): Record<string, string> {
  return { ...own, [runLabel]: run };
}

function clusterIpsOf({ clusterIP, otherClusterIP }: ScenarioService, book: AddressBook): V1Service['spec'] & object {
  if (clusterIP === 'None') return { clusterIP: 'None' };
  const known = book.clusterIp(clusterIP);
  if (known === undefined) return {};
  const other = otherClusterIP === undefined ? undefined : book.clusterIp(otherClusterIP);
  return { clusterIP: known, clusterIPs: other === undefined ? [known] : [known, other] };
}

/** A NodePort that nothing is known of yet has the scenario's own number, unless that is taken: then the API server chooses. */
function realServicePort(
  { name, port, protocol, nodePort }: ScenarioService['ports'][number],
  book: AddressBook,
): V1ServicePort {
  const real = nodePort === undefined ? undefined : (book.nodePort(nodePort, protocol) ?? nodePort);
  return { ...(name === '' ? {} : { name }), port, protocol, ...(real === undefined ? {} : { nodePort: real }) };
}

/** CIDRs of the lab's plan become the addresses that play them. */
function sourceRangesOf(
  { loadBalancerSourceRanges: ranges }: ScenarioService,
  how: Translation,
): V1Service['spec'] & object {
  if (ranges.length === 0) return {};
  return { loadBalancerSourceRanges: ranges.flatMap((range) => realRange(range, how)) };
}

function realRange(range: string, { nodes, client }: Translation): readonly string[] {
  const ipFamily: IpFamily = range.includes(':') ? 'IPv6' : 'IPv4';
  const length = ipFamily === 'IPv6' ? 128 : 32;
  const single = (...addresses: readonly (IpAddress | undefined)[]): readonly string[] =>
    addresses.flatMap((address) => (address === undefined ? [] : [`${address}/${length}`]));
  const [node1, node2] = [nodes.node1.addresses[ipFamily], nodes.node2.addresses[ipFamily]];
  switch (range) {
    case '10.244.0.0/16':
    case 'fd00:10:244::/48':
      return single(client.addresses[ipFamily]);
    case '172.18.0.0/24':
    case 'fd00:172:18::/64':
      return single(node1, node2);
    case '172.18.0.100/32':
    case 'fd00:172:18::100/128':
      return single(node2);
    case '172.18.0.11/32':
    case 'fd00:172:18::11/128':
      return single(node1);
    // node2 is the outside here, so somebody else is who never sends.
    case '172.18.0.12/32':
      return ['192.0.2.12/32'];
    case 'fd00:172:18::12/128':
      return ['2001:db8:2::12/128'];
    default:
      return [range];
  }
}

/** The EndpointSlices of a moment. The pool must have provided its endpoints. */
export function realSlices({ scenario, state }: ScenarioMoment, how: Translation): readonly V1EndpointSlice[] {
  const zones = zoneNames(scenario.zone, how.nodes);
  return clusterObjects(scenario, state)
    .filter(({ kind }) => kind === 'EndpointSlice')
    .map((object) => realSlice(object as unknown as ScenarioSlice, zones, how)); // as sliceObjects makes them
}

/** What `clusterObjects` makes of endpoints. */
interface ScenarioSlice {
  readonly metadata: {
    readonly namespace: string;
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly addressType: IpFamily;
  readonly ports: readonly { readonly name: string; readonly protocol: string; readonly port: number }[];
  readonly endpoints: readonly {
    readonly addresses: readonly IpAddress[];
    readonly conditions: Readonly<Record<string, boolean>>;
    readonly nodeName: 'node1' | 'node2';
    readonly hints?: {
      readonly forZones?: readonly { readonly name: string }[];
      readonly forNodes?: readonly { readonly name: string }[];
    };
  }[];
}

const serviceNameLabel = 'kubernetes.io/service-name';

function realSlice(slice: ScenarioSlice, zones: (name: string) => string, how: Translation): V1EndpointSlice {
  const { namespace, name, labels } = slice.metadata;
  const { nodes, pool } = how;
  const nodeName = (node: string): string => (node === 'node1' || node === 'node2' ? nodes[node].name : node);
  const named = (list: readonly { readonly name: string }[], real: (name: string) => string): { name: string }[] =>
    list.map((one) => ({ name: real(one.name) }));
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${namespace}-${name}`,
      namespace: how.namespace,
      labels: {
        ...labelsOf({}, how),
        [serviceNameLabel]: `${namespace}-${labels[serviceNameLabel] ?? ''}`,
        'endpointslice.kubernetes.io/managed-by': 'switchyard-conformance',
      },
    },
    addressType: slice.addressType,
    ports: slice.ports.map(({ name: port, ...rest }) => ({
      ...rest,
      ...(port === '' ? {} : { name: port }),
      port: realPort(rest.port),
    })),
    endpoints: slice.endpoints.map(({ addresses, conditions, nodeName: node, hints = {} }) => ({
      addresses: addresses.map((address) => pool.realAddress(address)),
      conditions,
      nodeName: nodeName(node),
      ...(hints.forZones === undefined && hints.forNodes === undefined
        ? {}
        : {
            hints: {
              ...(hints.forZones === undefined ? {} : { forZones: named(hints.forZones, zones) }),
              ...(hints.forNodes === undefined ? {} : { forNodes: named(hints.forNodes, nodeName) }),
            },
          }),
    })),
  };
}

/** The scenario's zone of node1 is node1's; any other is node2's, or one that no node has. */
function zoneNames(own: string, { node1, node2 }: NodePair): (name: string) => string {
  const elsewhere = node2.zone === undefined || node2.zone === node1.zone ? 'switchyard-elsewhere' : node2.zone;
  return (name) => (name === own ? (node1.zone ?? name) : elsewhere);
}
