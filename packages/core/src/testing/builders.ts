import { type IpAddress, type IpFamily, ipFamilyOf, parseIp } from '../model/ip/address.ts';
import { parseCidr } from '../model/ip/cidr.ts';
import { parsePort, type Protocol } from '../model/ip/port.ts';
import type {
  EndpointRecord,
  EndpointSliceRecord,
  SlicePortRecord,
  NodeRecord,
  ServiceCidrRecord,
  ServicePortRecord,
  ServiceRecord,
} from '../model/records/records.ts';
import { nodeName, type ServiceKey, serviceKey, sliceKey } from '../model/records/keys.ts';
import type { Flow } from '../model/forwarding/explain-types.ts';
import type { TableOptions, NodePortsOnLoopback } from '../model/forwarding/forwarding-table.ts';
import { seconds } from '../base/time.ts';

/** A Service port as a test writes it: TCP and unnamed unless said otherwise. */
export interface PortSpec {
  readonly name?: string;
  readonly protocol?: Protocol;
  readonly port?: number;
  readonly nodePort?: number;
}

/** The parts of a Service a test cares about; plain text and numbers. */
export interface ServiceSpec {
  /** Default: `LoadBalancer` with load-balancer IPs, `NodePort` with a nodePort, else `ClusterIP`. */
  readonly type?: ServiceRecord['type'];
  readonly clusterIps?: readonly string[];
  /** Default: one unnamed TCP port 80. */
  readonly ports?: readonly PortSpec[];
  readonly externalIps?: readonly string[];
  /** Each an IP of mode VIP, or a pair of IP and mode. */
  readonly loadBalancerIps?: readonly (string | readonly [ip: string, mode: string])[];
  readonly sourceRanges?: readonly string[];
  readonly external?: ServiceRecord['externalTrafficPolicy'];
  readonly internal?: ServiceRecord['internalTrafficPolicy'];
  readonly healthCheckNodePort?: number;
  /** ClientIP affinity with this timeout. */
  readonly affinitySeconds?: number;
  readonly isHeadless?: boolean;
  readonly serviceProxyName?: string;
}

/** A Service record; `key` is `namespace/name`. Without cluster IPs in the spec it has 10.96.0.10. */
export function service(key: string, spec: ServiceSpec = {}): ServiceRecord {
  const ports = (spec.ports ?? [{}]).map(servicePort);
  const clusterIps = (spec.clusterIps ?? ['10.96.0.10']).map(parseIp);
  return {
    key: keyOf(key),
    type: spec.type ?? defaultType(spec, ports),
    clusterIps: spec.isHeadless === true ? [] : clusterIps,
    isHeadless: spec.isHeadless ?? false,
    ipFamilies: clusterIps.map(ipFamilyOf),
    ports,
    externalIps: (spec.externalIps ?? []).map(parseIp),
    loadBalancerIngress: (spec.loadBalancerIps ?? []).map((ingress) =>
      typeof ingress === 'string'
        ? { ip: parseIp(ingress), ipMode: 'VIP' }
        : { ip: parseIp(ingress[0]), ipMode: ingress[1] },
    ),
    loadBalancerSourceRanges: (spec.sourceRanges ?? []).map(parseCidr),
    externalTrafficPolicy: spec.external ?? 'Cluster',
    internalTrafficPolicy: spec.internal ?? 'Cluster',
    healthCheckNodePort: spec.healthCheckNodePort === undefined ? undefined : parsePort(spec.healthCheckNodePort),
    sessionAffinity:
      spec.affinitySeconds === undefined
        ? { kind: 'none' }
        : { kind: 'clientIP', timeout: seconds(spec.affinitySeconds) },
    serviceProxyName: spec.serviceProxyName,
  };
}

/** The parts of an endpoint a test cares about. */
export interface EndpointSpec {
  readonly ip: string;
  readonly node?: string;
  /** Default true, except when terminating: the slice controller never says both. */
  readonly ready?: boolean;
  /** Default: true. */
  readonly serving?: boolean;
  readonly terminating?: boolean;
  readonly zoneHints?: readonly string[];
  readonly nodeHints?: readonly string[];
}

/** Shared, as sources share it: most endpoints have no hints. */
const noHints: readonly string[] = [];

/** An endpoint record: ready unless terminating, serving, on no node. */
export function endpoint(spec: EndpointSpec | string): EndpointRecord {
  const given = typeof spec === 'string' ? { ip: spec } : spec;
  return {
    address: parseIp(given.ip),
    ready: given.ready ?? given.terminating !== true,
    serving: given.serving ?? true,
    terminating: given.terminating ?? false,
    nodeName: given.node === undefined ? undefined : nodeName(given.node),
    zoneHints: given.zoneHints ?? noHints,
    nodeHints: given.nodeHints ?? noHints,
  };
}

/** The parts of an EndpointSlice a test cares about. */
export interface SliceSpec {
  /** Default: the Service's name with `-1`. */
  readonly name?: string;
  /** Default: the family of the first endpoint, IPv4 if there is none. */
  readonly ipFamily?: IpFamily;
  /** Default: one unnamed TCP port 8080. */
  readonly ports?: readonly PortSpec[];
  readonly endpoints?: readonly (EndpointSpec | string)[];
}

/** An EndpointSlice record of the Service `namespace/name`. */
export function slice(of: string, spec: SliceSpec = {}): EndpointSliceRecord {
  const [namespace = '', name = ''] = of.split('/');
  const endpoints = (spec.endpoints ?? []).map(endpoint);
  const [first] = endpoints;
  return {
    key: sliceKey(namespace, spec.name ?? `${name}-1`),
    service: keyOf(of),
    ipFamily: spec.ipFamily ?? (first === undefined ? 'IPv4' : ipFamilyOf(first.address)),
    ports: (spec.ports ?? [{ port: 8080 }]).map(slicePort),
    endpoints,
    lastChangeTriggerTime: undefined,
  };
}

/** A Node record: eligible, without zone unless given. */
export function node(
  name: string,
  spec: { readonly zone?: string; readonly addresses?: readonly string[]; readonly podCidrs?: readonly string[] } = {},
): NodeRecord {
  return {
    name: nodeName(name),
    zone: spec.zone ?? '',
    addresses: (spec.addresses ?? []).map(parseIp),
    podCidrs: (spec.podCidrs ?? []).map(parseCidr),
    isEligible: true,
  };
}

/** A ServiceCIDR record. */
export function serviceCidr(name: string, ...cidrs: readonly string[]): ServiceCidrRecord {
  return { name, cidrs: cidrs.map(parseCidr) };
}

/** Options as a test cares about them; plain text. */
export interface OptionsSpec {
  readonly ipFamily?: IpFamily;
  readonly nodeName?: string;
  readonly masqueradeAll?: boolean;
  readonly terminatingFallback?: TableOptions['terminatingFallback'];
  readonly externalIps?: TableOptions['externalIps'];
  /** Default: `asVip`. */
  readonly routerIpMode?: TableOptions['routerIpMode'];
  /** Default: a detector for 10.244.0.0/16 or fd00:10:244::/56; `none` for no detector. */
  readonly podCidr?: string;
  /** Instead of `podCidr`. */
  readonly podDetector?: TableOptions['podDetector'];
  /** Default: every address of the family. */
  readonly nodePortCidrs?: readonly string[];
  /** NodePorts on loopback addresses: by rules of the kernel, or by a proxy. Default: none. */
  readonly localhostNodePorts?: boolean | 'proxy';
  /** Pairs of address and port. Default: none. */
  readonly apiServers?: readonly (readonly [address: string, port: number])[];
}

/** Table options: IPv4, our Node is `n1`, pods are in 10.244.0.0/16 (fd00:10:244::/56), NodePorts on all addresses. */
export function tableOptions(spec: OptionsSpec = {}): TableOptions {
  const ipFamily = spec.ipFamily ?? 'IPv4';
  const podCidr = spec.podCidr ?? (ipFamily === 'IPv4' ? '10.244.0.0/16' : 'fd00:10:244::/56');
  return {
    ipFamily,
    nodeName: nodeName(spec.nodeName ?? 'n1'),
    masqueradeAll: spec.masqueradeAll ?? false,
    terminatingFallback: spec.terminatingFallback ?? 'on',
    externalIps: spec.externalIps ?? 'forward',
    routerIpMode: spec.routerIpMode ?? 'asVip',
    podDetector:
      spec.podDetector ?? (podCidr === 'none' ? { kind: 'none' } : { kind: 'cidr', cidr: parseCidr(podCidr) }),
    nodePortCidrs: (spec.nodePortCidrs ?? [ipFamily === 'IPv4' ? '0.0.0.0/0' : '::/0']).map(parseCidr),
    nodePortsOnLoopback: loopbackChoice(spec.localhostNodePorts ?? false),
    apiServers: (spec.apiServers ?? []).map(([address, port]) => ({
      address: parseIp(address),
      port: parsePort(port),
    })),
  };
}

function loopbackChoice(choice: boolean | 'proxy'): NodePortsOnLoopback {
  if (choice === 'proxy') return 'proxy';
  return choice ? 'kernel' : 'none';
}

/** A typical sender of each class, per family. */
const senders: Readonly<Record<IpFamily, Readonly<Record<Flow['from'], string>>>> = {
  IPv4: { pod: '10.244.1.200', node: '192.0.2.1', outside: '203.0.113.9' },
  IPv6: { pod: 'fd00:10:244::200', node: '2001:db8::1', outside: '2001:db8:1::9' },
};

/**
 * A flow to `IP:port/PROTOCOL` (IPv6 in brackets, TCP if left out). `source` defaults to a typical
 * sender of the class; the destination counts as local if `isLocal`.
 */
export function flow(
  from: Flow['from'],
  to: string,
  spec: { readonly source?: string; readonly isLocal?: boolean } = {},
): Flow {
  const match = /^(?:\[(?<six>[^\]]+)\]|(?<four>[^:]+)):(?<port>\d+)(?:\/(?<protocol>TCP|UDP|SCTP))?$/.exec(to);
  const destination: IpAddress = parseIp(match?.groups?.['six'] ?? match?.groups?.['four'] ?? to);
  return {
    from,
    source: parseIp(spec.source ?? senders[ipFamilyOf(destination)][from]),
    destination,
    destinationPort: parsePort(Number(match?.groups?.['port'])),
    protocol: (match?.groups?.['protocol'] ?? 'TCP') as Protocol, // the pattern admits nothing else
    destinationIsLocal: spec.isLocal ?? false,
  };
}

function keyOf(text: string): ServiceKey {
  const [namespace = '', name = ''] = text.split('/');
  return serviceKey(namespace, name);
}

function servicePort(spec: PortSpec): ServicePortRecord {
  return {
    name: spec.name ?? '',
    protocol: spec.protocol ?? 'TCP',
    port: parsePort(spec.port ?? 80),
    nodePort: spec.nodePort === undefined ? undefined : parsePort(spec.nodePort),
  };
}

function slicePort(spec: PortSpec): SlicePortRecord {
  return { name: spec.name ?? '', protocol: spec.protocol ?? 'TCP', port: parsePort(spec.port ?? 8080) };
}

function defaultType(spec: ServiceSpec, ports: readonly ServicePortRecord[]): ServiceRecord['type'] {
  if (spec.loadBalancerIps !== undefined || spec.healthCheckNodePort !== undefined) return 'LoadBalancer';
  return ports.some((port) => port.nodePort !== undefined) ? 'NodePort' : 'ClusterIP';
}
