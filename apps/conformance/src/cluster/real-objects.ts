import { type IpAddress, type IpFamily, hostCidr, parseIp } from '@switchyard/core';
import type { EndpointSlice, Service, ServicePortObject } from '@switchyard/core/kubernetes';
import { clusterObjects, ipv6TwinOfCidr, serviceObject } from '@switchyard/scenarios';
import type { ScenarioPort, ScenarioService } from '@switchyard/scenarios';
import type { ScenarioMoment } from '../model/test-environment.ts';
import type { AddressBook } from './object-writer.ts';
import type { LoadBalancing } from './load-balancing.ts';
import { type NodePair, runLabel } from './preflight.ts';
import type { ClusterPlace } from './cluster-connector.ts';
import { realPort } from './echo-pool.ts';

/** No controller serves this class, so the runner writes the status. */
const loadBalancerClass = 'switchyard.dev/conformance';

/** A Service to write, with the scenario's names for what the API server allocates. */
export interface WantedService {
  readonly service: ScenarioService;
  readonly object: Service;
  /** `status.loadBalancer.ingress`; empty: none. */
  readonly ingress: readonly { readonly ip?: string; readonly ipMode?: string }[];
  readonly balancing: LoadBalancing;
}

/** Longest name of a Service. */
const longestName = 63;

/** `shop/cart` is `cart-shop` in the namespace of the run: a name keeps its beginning (KEP-5311), and one without room for more is whole. */
export function realName(key: string): string {
  const [namespace = '', name = ''] = key.split('/');
  const both = `${name}-${namespace}`;
  return both.length > longestName ? name : both;
}

/** The Services of a moment. They request what the API server allocated before; it chooses the rest. */
export function realServices({ scenario, state }: ScenarioMoment, how: ClusterPlace): readonly WantedService[] {
  return [...state.services.values()].map((service) => {
    const planned = serviceObject(scenario, service);
    const ingress = planned.status?.loadBalancer?.ingress ?? [];
    return { service, object: realService(service, planned, how), ingress, balancing: how.balancing };
  });
}

function realService(service: ScenarioService, { spec = {} }: Service, how: ClusterPlace): Service {
  const { type, healthCheckNodePort } = service;
  const labels = labelsOf(service.labels, how);
  const metadata = { name: realName(service.name), namespace: how.caller.namespace, labels };
  if (type === 'ExternalName') return { metadata, spec: { type, externalName: 'nowhere.invalid' } };
  const {
    clusterIP: _ip,
    clusterIPs: _ips,
    loadBalancerSourceRanges: _ranges,
    healthCheckNodePort: _port,
    ...rest
  } = spec;
  const healthPort = healthCheckNodePort === undefined ? undefined : how.book.healthPorts.get(healthCheckNodePort);
  return {
    metadata,
    spec: {
      ...rest,
      ...clusterIpsOf(service, how.book),
      ipFamilyPolicy: (spec.ipFamilies ?? []).length > 1 ? 'RequireDualStack' : 'SingleStack',
      ports: service.ports.map((port) => realServicePort(port, how.book)),
      ...(type === 'LoadBalancer' ? { ...classOf(how), ...sourceRangesOf(service.loadBalancerSourceRanges, how) } : {}),
      ...(healthPort === undefined ? {} : { healthCheckNodePort: healthPort }),
    },
  };
}

function classOf({ balancing }: ClusterPlace): Service['spec'] & object {
  return balancing === 'runner' ? { loadBalancerClass } : {};
}

function labelsOf(own: Readonly<Record<string, string>>, { run }: ClusterPlace): Record<string, string> {
  return { ...own, [runLabel]: run };
}

function clusterIpsOf({ clusterIP, otherClusterIP }: ScenarioService, book: AddressBook): Service['spec'] & object {
  if (clusterIP === 'None') return { clusterIP: 'None' };
  const [known, other] = [clusterIP, otherClusterIP].map((ip) => (ip === undefined ? ip : book.clusterIps.get(ip)));
  if (known === undefined) return {};
  return { clusterIP: known, clusterIPs: other === undefined ? [known] : [known, other] };
}

/** A NodePort without an allocation has the scenario's number, unless that is taken: then the API server chooses. */
function realServicePort({ name, port, protocol, nodePort }: ScenarioPort, book: AddressBook): ServicePortObject {
  const real = nodePort === undefined ? undefined : (book.nodePorts.get(`${nodePort}/${protocol}`) ?? nodePort);
  return { ...(name === '' ? {} : { name }), port, protocol, ...(real === undefined ? {} : { nodePort: real }) };
}

/** Replaces CIDRs of the lab's plan by the addresses that stand for them. */
function sourceRangesOf(ranges: readonly string[], how: ClusterPlace): Service['spec'] & object {
  if (ranges.length === 0) return {};
  return { loadBalancerSourceRanges: ranges.flatMap((range) => realRange(range, how)) };
}

function realRange(range: string, { nodes, senders }: ClusterPlace): readonly string[] {
  const ipFamily: IpFamily = range.includes(':') ? 'IPv6' : 'IPv4';
  const [node1, node2] = [nodes.node1.addresses[ipFamily], nodes.node2.addresses[ipFamily]];
  const substitutes: readonly (readonly [string, readonly (IpAddress | undefined)[]])[] = [
    ['10.244.0.0/16', [senders.pod.addresses[ipFamily]]],
    ['172.18.0.0/24', [node1, node2]],
    ['172.18.0.100/32', [node2]],
    ['172.18.0.11/32', [node1]],
    // node2 is the outside here, so documentation addresses stand for hosts that never send.
    ['172.18.0.12/32', [parseIp(ipFamily === 'IPv4' ? '192.0.2.12' : '2001:db8:2::12')]],
    ['172.18.0.50/32', [parseIp(ipFamily === 'IPv4' ? '192.0.2.50' : '2001:db8:2::50')]],
  ];
  const found = substitutes.find(([planned]) => range === planned || range === ipv6TwinOfCidr(planned));
  if (found === undefined) return [range];
  return found[1].flatMap((address) => (address === undefined ? [] : hostCidr(address)));
}

/** The EndpointSlices of a moment. The pool must have provided its endpoints. */
export function realSlices({ scenario, state }: ScenarioMoment, how: ClusterPlace): readonly EndpointSlice[] {
  const zones = zoneNames(scenario.zone, how.nodes);
  return clusterObjects(scenario, state)
    .filter((object) => object.kind === 'EndpointSlice')
    .map((slice) => realSlice(slice, zones, how));
}

const serviceNameLabel = 'kubernetes.io/service-name';

function realSlice(slice: EndpointSlice, zones: (name: string) => string, how: ClusterPlace): EndpointSlice {
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
      namespace: how.caller.namespace,
      labels: {
        ...labelsOf({}, how),
        [serviceNameLabel]: realName(`${namespace}/${labels[serviceNameLabel] ?? ''}`),
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
