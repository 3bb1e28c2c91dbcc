import { type IpAddress, type IpFamily, parseIp } from '@switchyard/core';
import type { EndpointSlice, Service, ServicePortObject } from '@switchyard/core/kubernetes';
import { affinityOf, clusterObjects, familiesOf, ingressOf, type ScenarioService } from '@switchyard/scenarios';
import type { ScenarioMoment } from '../model/test-environment.ts';
import type { AddressBook } from './address-book.ts';
import type { NodePair } from './choose-nodes.ts';
import { loadBalancerClass, runLabel } from './cluster-options.ts';
import { type EchoPool, realPort } from './echo-pool.ts';
import type { TrafficPod } from './start-pods.ts';

/** Inputs for translating scenarios into objects of the cluster. */
export interface Translation {
  readonly book: AddressBook;
  readonly pool: EchoPool;
  readonly nodes: NodePair;
  readonly namespace: string;
  readonly run: string;
  /** The pod that sends as `pod`. */
  readonly client: TrafficPod;
}

/** A Service to write, with the scenario's names for what the API server allocates. */
export interface WantedService {
  readonly service: ScenarioService;
  readonly object: Service;
  /** `status.loadBalancer.ingress`; empty: none. */
  readonly ingress: ReturnType<typeof ingressOf>;
}

/** `shop/cart` is `shop-cart` in the namespace of the run. */
export function realName(key: string): string {
  return key.replace('/', '-');
}

/** The Services of a moment. They request what the API server allocated before; it chooses the rest. */
export function realServices({ scenario, state }: ScenarioMoment, how: Translation): readonly WantedService[] {
  const families = familiesOf(scenario);
  return [...state.services.values()].map((service) => ({
    service,
    object: realService(service, families, how),
    ingress: ingressOf(service),
  }));
}

function realService(service: ScenarioService, families: readonly IpFamily[], how: Translation): Service {
  const { type, externalTrafficPolicy, externalIPs, healthCheckNodePort } = service;
  const metadata = { name: realName(service.name), namespace: how.namespace, labels: labelsOf(service.labels, how) };
  if (type === 'ExternalName') return { metadata, spec: { type, externalName: 'nowhere.invalid' } };
  const isExternal = type === 'NodePort' || type === 'LoadBalancer' || externalIPs.length > 0;
  const healthPort = healthCheckNodePort === undefined ? undefined : how.book.healthPort(healthCheckNodePort);
  return {
    metadata,
    spec: {
      type,
      ...clusterIpsOf(service, how.book),
      ipFamilies: families,
      ipFamilyPolicy: families.length > 1 ? 'RequireDualStack' : 'SingleStack',
      ports: service.ports.map((port) => realServicePort(port, how.book)),
      internalTrafficPolicy: service.internalTrafficPolicy,
      ...(isExternal ? { externalTrafficPolicy } : {}),
      ...(externalIPs.length > 0 ? { externalIPs } : {}),
      ...(type === 'LoadBalancer' ? { loadBalancerClass, ...sourceRangesOf(service, how) } : {}),
      ...(healthPort === undefined ? {} : { healthCheckNodePort: healthPort }),
      ...affinityOf(service),
    },
  };
}

function labelsOf(own: Readonly<Record<string, string>>, { run }: Translation): Record<string, string> {
  return { ...own, [runLabel]: run };
}

function clusterIpsOf({ clusterIP, otherClusterIP }: ScenarioService, book: AddressBook): Service['spec'] & object {
  if (clusterIP === 'None') return { clusterIP: 'None' };
  const known = book.clusterIp(clusterIP);
  if (known === undefined) return {};
  const other = otherClusterIP === undefined ? undefined : book.clusterIp(otherClusterIP);
  return { clusterIP: known, clusterIPs: other === undefined ? [known] : [known, other] };
}

/** A NodePort without an allocation has the scenario's number, unless that is taken: then the API server chooses. */
function realServicePort(
  { name, port, protocol, nodePort }: ScenarioService['ports'][number],
  book: AddressBook,
): ServicePortObject {
  const real = nodePort === undefined ? undefined : (book.nodePort(nodePort, protocol) ?? nodePort);
  return { ...(name === '' ? {} : { name }), port, protocol, ...(real === undefined ? {} : { nodePort: real }) };
}

/** Replaces CIDRs of the lab's plan by the addresses that stand for them. */
function sourceRangesOf(
  { loadBalancerSourceRanges: ranges }: ScenarioService,
  how: Translation,
): Service['spec'] & object {
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
    // node2 is the outside here, so a documentation address stands for a host that never sends.
    case '172.18.0.12/32':
      return ['192.0.2.12/32'];
    case 'fd00:172:18::12/128':
      return ['2001:db8:2::12/128'];
    default:
      return [range];
  }
}

/** The EndpointSlices of a moment. The pool must have provided its endpoints. */
export function realSlices({ scenario, state }: ScenarioMoment, how: Translation): readonly EndpointSlice[] {
  const zones = zoneNames(scenario.zone, how.nodes);
  return clusterObjects(scenario, state)
    .filter((object) => object.kind === 'EndpointSlice')
    .map((slice) => realSlice(slice, zones, how));
}

const serviceNameLabel = 'kubernetes.io/service-name';

function realSlice(slice: EndpointSlice, zones: (name: string) => string, how: Translation): EndpointSlice {
  const { namespace = '', name = '', labels = {} } = slice.metadata;
  const { nodes, pool } = how;
  const nodeName = (node: string): string => (node === 'node1' || node === 'node2' ? nodes[node].name : node);
  const named = (
    list: readonly { readonly name: string }[],
    real: (name: string) => string,
  ): readonly { readonly name: string }[] => list.map((one) => ({ name: real(one.name) }));
  return {
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
    ports: (slice.ports ?? []).map(({ name: port = '', ...rest }) => ({
      ...rest,
      ...(port === '' ? {} : { name: port }),
      port: realPort(rest.port ?? 0),
    })),
    endpoints: (slice.endpoints ?? []).map(({ addresses, conditions = {}, nodeName: node = '', hints = {} }) => ({
      addresses: addresses.map((address) => pool.realAddress(parseIp(address))),
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
