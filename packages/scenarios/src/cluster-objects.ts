import { type IpAddress, type IpFamily, ipFamilyOf } from '@switchyard/core';
import type { EndpointObject, EndpointSlice, Node, Service, ServiceCidr } from '@switchyard/core/kubernetes';
import { otherFamilyOf } from './other-family.ts';
import type { Scenario, ScenarioEndpoint, ScenarioService } from './scenario.ts';
import type { ScenarioState } from './scenario-tables.ts';

interface Named {
  readonly apiVersion: string;
  readonly metadata: { readonly name: string };
}

/** A Kubernetes object as JSON, as the API server would send it or a manifest would hold it. */
export type ClusterObject = Named &
  (
    | ({ readonly kind: 'Service' } & Service)
    | ({ readonly kind: 'EndpointSlice' } & EndpointSlice)
    | ({ readonly kind: 'Node' } & Node)
    | ({ readonly kind: 'ServiceCIDR' } & ServiceCidr)
  );

/** Addresses of the two nodes of every scenario, in the lab's plan. `node1` is under test. */
export const nodeAddresses: Readonly<Record<IpFamily, Readonly<Record<'node1' | 'node2', string>>>> = {
  IPv4: { node1: '172.18.0.11', node2: '172.18.0.12' },
  IPv6: { node1: 'fd00:172:18::11', node2: 'fd00:172:18::12' },
};

/** A second address that node1 has on the same interface. Its Node object does not name it, unless a step says so. */
export const secondNodeAddresses: Readonly<Record<IpFamily, string>> = {
  IPv4: '172.18.0.200',
  IPv6: 'fd00:172:18::200',
};

/** Contains the pods of all nodes: the agent's `--cluster-cidr`. */
export const clusterCidrs: Readonly<Record<IpFamily, string>> = { IPv4: '10.244.0.0/16', IPv6: 'fd00:10:244::/48' };

const serviceCidrs: Readonly<Record<IpFamily, string>> = { IPv4: '10.96.0.0/16', IPv6: 'fd00:10:96::/112' };
const podCidrs: Readonly<Record<IpFamily, (node: number) => string>> = {
  IPv4: (node) => `10.244.${node}.0/24`,
  IPv6: (node) => `fd00:10:244:${node}::/64`,
};

/** The fields that are neither undefined nor an empty list. */
function given<T extends object>(fields: T): Partial<{ [K in keyof T]: Exclude<T[K], undefined> }> {
  const has = (value: unknown): boolean => value !== undefined && !(Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => has(value))) as ReturnType<typeof given<T>>;
}

/** All objects of a state, from which every run starts. */
export function clusterObjects(scenario: Scenario, state: ScenarioState): readonly ClusterObject[] {
  const services = [...state.services.values()];
  return [
    ...nodeObjects(familiesOf(scenario), scenario.zone, state.nodeAddress === undefined ? [] : [state.nodeAddress]),
    serviceCidrObject(
      'kubernetes',
      familiesOf(scenario).map((family) => serviceCidrs[family]),
    ),
    ...[...state.serviceCidrs].map(([name, cidr]) => serviceCidrObject(name, [cidr])),
    ...services.map((service) => serviceObject(scenario, service)),
    ...services.flatMap((service) => sliceObjects(scenario, service, state)),
    ...scenario.objects.map((object) => object as unknown as ClusterObject), // the schema has seen to kind and metadata
  ];
}

/** The scenario's own family first; the other one only in a dual-stack scenario. */
export function familiesOf(scenario: Scenario): readonly IpFamily[] {
  const { ipFamily, isDualStack } = scenario;
  return isDualStack ? [ipFamily, otherFamilyOf(ipFamily)] : [ipFamily];
}

/** The two nodes. An address of `changed` replaces that of its family on node1. */
export function nodeObjects(
  families: readonly IpFamily[],
  zone: string,
  changed: readonly IpAddress[],
): readonly ClusterObject[] {
  const addressOf = (name: 'node1' | 'node2', family: IpFamily): string => {
    const given = name === 'node1' ? changed.find((address) => ipFamilyOf(address) === family) : undefined;
    return given ?? nodeAddresses[family][name];
  };
  return (['node1', 'node2'] as const).map((name, index) => {
    const cidrs = families.map((family) => podCidrs[family](index + 1));
    const labels = {
      'kubernetes.io/hostname': name,
      'kubernetes.io/os': 'linux',
      'topology.kubernetes.io/zone': name === 'node1' ? zone : 'zone-b',
    };
    return {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels },
      spec: { podCIDR: cidrs[0] ?? '', podCIDRs: cidrs },
      status: {
        addresses: families.map((family) => ({ type: 'InternalIP', address: addressOf(name, family) })),
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    };
  });
}

function serviceCidrObject(name: string, cidrs: readonly string[]): ClusterObject {
  return { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', metadata: { name }, spec: { cidrs } };
}

function nameOf(key: string): { readonly namespace: string; readonly name: string } {
  const [namespace = '', name = ''] = key.split('/');
  return { namespace, name };
}

/** A Service as the API server would send it. */
export function serviceObject(
  scenario: Scenario,
  service: ScenarioService,
): ClusterObject & { readonly kind: 'Service' } {
  const { externalIPs, loadBalancerSourceRanges, healthCheckNodePort } = service;
  const isExternal = service.type === 'NodePort' || service.type === 'LoadBalancer' || service.externalIPs.length > 0;
  // The API server refuses a leftover `Local`, but objects that it took earlier have one.
  const hasExternalPolicy = isExternal || service.externalTrafficPolicy === 'Local';
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { ...nameOf(service.name), labels: service.labels },
    spec: {
      type: service.type,
      clusterIP: service.clusterIP,
      clusterIPs: [service.clusterIP, ...(service.otherClusterIP === undefined ? [] : [service.otherClusterIP])],
      ipFamilies: familiesOf(scenario),
      ports: service.ports.map(({ nodePort, ...port }) => ({ ...port, ...given({ nodePort }) })),
      ...(hasExternalPolicy ? { externalTrafficPolicy: service.externalTrafficPolicy } : {}),
      internalTrafficPolicy: service.internalTrafficPolicy,
      ...given({ externalIPs, loadBalancerSourceRanges, healthCheckNodePort }),
      ...affinityOf(service),
    },
    status: { loadBalancer: { ingress: ingressOf(service) } },
  };
}

function affinityOf({ sessionAffinityTimeoutSeconds: timeoutSeconds }: ScenarioService): Service['spec'] & object {
  if (timeoutSeconds === undefined) return { sessionAffinity: 'None' };
  return { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds } } };
}

/** `status.loadBalancer.ingress`; empty: none. */
function ingressOf(service: ScenarioService): readonly { readonly ip: string; readonly ipMode?: string }[] {
  return service.loadBalancerIPs.map(({ ip, ipMode }) => (ipMode === undefined ? { ip } : { ip, ipMode }));
}

/** One EndpointSlice per slice name and address family. The n-th port of the Service leads to target port + n. */
function sliceObjects(scenario: Scenario, service: ScenarioService, state: ScenarioState): readonly ClusterObject[] {
  const endpoints = state.endpoints.filter((endpoint) => endpoint.service === service.name);
  const { namespace, name } = nameOf(service.name);
  const groups = Map.groupBy(endpoints, (endpoint) => `${endpoint.slice}-${endpoint.port}-${ipFamilyOf(endpoint.ip)}`);
  if (groups.size === 0) groups.set(`1-8080-${scenario.ipFamily}`, []);
  return [...groups].map(([group, members]) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace, name: `${name}-${group.toLowerCase()}`, labels: { 'kubernetes.io/service-name': name } },
    addressType: members[0] === undefined ? scenario.ipFamily : ipFamilyOf(members[0].ip),
    ports: service.ports.map((port, index) => ({
      name: port.name,
      protocol: port.protocol,
      port: (members[0]?.port ?? 8080) + index,
    })),
    endpoints: members.map(endpointObject),
  }));
}

function endpointObject({
  ip,
  node,
  ready,
  serving,
  terminating,
  zoneHints,
  nodeHints,
}: ScenarioEndpoint): EndpointObject {
  const named = (names: readonly string[]): readonly { readonly name: string }[] => names.map((name) => ({ name }));
  const hints = given({ forZones: named(zoneHints), forNodes: named(nodeHints) });
  return {
    addresses: [ip],
    conditions: given({ ready, serving, terminating }),
    nodeName: node,
    ...(Object.keys(hints).length === 0 ? {} : { hints }),
  };
}

/** All addresses of a scenario's endpoints in any state, with the ports that their pods must listen on. */
export function endpointPods(
  scenario: Scenario,
): ReadonlyMap<IpAddress, { readonly node: string; readonly ports: ReadonlySet<number> }> {
  const pods = new Map<IpAddress, { readonly node: string; readonly ports: Set<number> }>();
  const put = scenario.steps.flatMap((step) => (step.kind === 'putEndpoint' ? [step.endpoint] : []));
  const services = [
    ...scenario.services,
    ...scenario.steps.flatMap((step) => (step.kind === 'putService' ? [step.service] : [])),
  ];
  for (const endpoint of [...scenario.endpoints, ...put]) {
    const pod = pods.get(endpoint.ip) ?? { node: endpoint.node, ports: new Set<number>() };
    const portCount = Math.max(
      ...services.filter((one) => one.name === endpoint.service).map((one) => one.ports.length),
    );
    for (let index = 0; index < portCount; index++) pod.ports.add(endpoint.port + index);
    pods.set(endpoint.ip, pod);
  }
  return pods;
}
