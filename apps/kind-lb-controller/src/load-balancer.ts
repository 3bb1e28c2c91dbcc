import type { V1Node, V1Service } from '@kubernetes/client-node';
import {
  compareIps,
  type IpAddress,
  type IpFamily,
  ipFamilyOf,
  type Port,
  type ServiceKey,
  serviceKey,
  tryParseCidr,
  tryParseIp,
  tryParsePort,
} from '@switchyard/core';

/** A node as a target: where HAProxy sends and asks. */
export interface LoadBalancerNode {
  readonly name: string;
  readonly addresses: Readonly<Partial<Record<IpFamily, IpAddress>>>;
}

/** One TCP port that HAProxy listens on. */
export interface LoadBalancerPort {
  readonly port: Port;
  readonly nodePort: Port;
}

/** What one Service asks of the load balancer. */
export interface LoadBalancer {
  readonly service: ServiceKey;
  /** Families the Service has, in its order. */
  readonly ipFamilies: readonly IpFamily[];
  readonly ports: readonly LoadBalancerPort[];
  /** Where a node's health is asked: the healthCheckNodePort under eTP Local, else the proxy's own health port. */
  readonly healthPort: Port;
  /** Sources that may connect; empty means everybody. */
  readonly sourceRanges: readonly string[];
  /** The same client goes to the same node (sessionAffinity: ClientIP). */
  readonly keepsClients: boolean;
  /** What it asks for and does not get, one sentence each. */
  readonly refused: readonly string[];
}

/** Where kube-proxy, and our agent, say whether a node should get eTP Cluster traffic. */
export const proxyHealthPort: Port = 10_256 as Port;

const excludeLabel = 'node.kubernetes.io/exclude-from-external-load-balancers';
const deletionTaint = 'ToBeDeletedByClusterAutoscaler';

/** Whether this controller serves the Service: type LoadBalancer, no class, not being deleted. */
export function isOurs(service: V1Service): boolean {
  return (
    service.spec?.type === 'LoadBalancer' &&
    service.spec.loadBalancerClass === undefined &&
    service.metadata?.deletionTimestamp === undefined
  );
}

/** The nodes that may get external traffic, by name: not excluded, not about to be deleted (KEP-3458: readiness does not count). */
export function eligibleNodes(nodes: readonly V1Node[]): readonly LoadBalancerNode[] {
  return nodes
    .filter((node) => node.metadata?.labels?.[excludeLabel] === undefined)
    .filter((node) => !(node.spec?.taints ?? []).some((taint) => taint.key === deletionTaint))
    .filter((node) => node.metadata?.deletionTimestamp === undefined)
    .map((node) => ({ name: node.metadata?.name ?? '', addresses: addressesOf(node) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function addressesOf(node: V1Node): LoadBalancerNode['addresses'] {
  const internal = (node.status?.addresses ?? []).filter((address) => address.type === 'InternalIP');
  const addresses: Partial<Record<IpFamily, IpAddress>> = {};
  for (const { address } of internal) {
    const ip = tryParseIp(address);
    if (ip !== undefined) addresses[ipFamilyOf(ip)] ??= ip;
  }
  return addresses;
}

/** What the Service asks for. Parts that HAProxy cannot do are named in `refused`, never ignored. */
export function loadBalancerOf(service: V1Service): LoadBalancer {
  const spec = service.spec ?? {};
  const refused: string[] = [];
  const ports: LoadBalancerPort[] = [];
  for (const port of spec.ports ?? []) {
    const number = tryParsePort(port.port);
    const nodePort = tryParsePort(port.nodePort);
    const title = `port ${port.name ?? ''} ${port.port}/${port.protocol ?? 'TCP'}`.replace('  ', ' ');
    if ((port.protocol ?? 'TCP') !== 'TCP') refused.push(`${title}: HAProxy forwards TCP only`);
    else if (number === undefined || nodePort === undefined) refused.push(`${title}: it has no node port to send to`);
    else ports.push({ port: number, nodePort });
  }
  const isLocal = spec.externalTrafficPolicy === 'Local';
  return {
    service: serviceKey(service.metadata?.namespace ?? '', service.metadata?.name ?? ''),
    ipFamilies: (spec.ipFamilies ?? ['IPv4']).filter(
      (family): family is IpFamily => family === 'IPv4' || family === 'IPv6',
    ),
    ports: ports.sort((a, b) => a.port - b.port),
    healthPort: (isLocal ? tryParsePort(spec.healthCheckNodePort) : undefined) ?? proxyHealthPort,
    sourceRanges: (spec.loadBalancerSourceRanges ?? []).flatMap((range) => tryParseCidr(range) ?? []),
    keepsClients: spec.sessionAffinity === 'ClientIP',
    refused,
  };
}

/** The addresses of one family out of a list, in order. */
export function inFamily(addresses: readonly IpAddress[], family: IpFamily): readonly IpAddress[] {
  return addresses.filter((address) => ipFamilyOf(address) === family).sort(compareIps);
}
