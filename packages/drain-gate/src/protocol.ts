import {
  type IpAddress,
  type Millis,
  type Protocol,
  seconds,
  type ServiceKey,
  type TrafficPolicy,
  tryParseIp,
} from '@switchyard/core';

/** Path on the health port of each node: what the node has applied. */
export const nodePath = '/drain/node';
/** Path on the health port of each node: connections of a pod there. */
export const connectionsPath = '/drain/connections';
/** Longest wait of a node for a version, in seconds. */
export const maxNodeWait = 60;
/** Services of one question; more would not fit into a request line. */
export const maxServices = 100;

/** Asks a node what its kernel has. It answers when that includes version `after`, at the latest after `timeout`. */
export interface NodeQuestion {
  /** The resourceVersion of EndpointSlices. */
  readonly after: number;
  readonly services: readonly ServiceKey[];
  /** Up to `maxNodeWait`. */
  readonly timeout: Millis;
}

/** A client of a Service's health-check port on the node: mostly a load balancer. */
export interface CheckingClient {
  readonly address: string;
  /** Answers 503 in a row. */
  readonly failures: number;
  /** Whether it uses the node, as it says itself; undefined: it does not say, or the agent is too old to know. */
  readonly announced?: 'uses' | 'left';
}

/** An address of a pod as an endpoint of a Service. */
export interface ServedPod {
  readonly address: IpAddress;
  readonly service: ServiceKey;
}

/** A pod that ends, and that the node may still choose for a new connection. */
export interface PodUse extends ServedPod {
  readonly policies: readonly TrafficPolicy[];
  /** Another proxy's rules are still those of before: it chooses a pod that it must not choose any more, or not yet one that it must. */
  readonly isLate?: boolean;
  /** Only if nothing but traffic from outside can get there: who checks whether this node has endpoints. */
  readonly checkedBy?: readonly CheckingClient[];
}

/** State of a node's kernel. */
export interface NodeReply {
  readonly node: string;
  /** The resourceVersion of EndpointSlices up to which the kernel has them in every IP family; 0 before the first apply. */
  readonly slicesVersion: number;
  /** Asked Services whose last apply failed. */
  readonly failed: readonly ServiceKey[];
  /** Of the asked Services. */
  readonly used: readonly PodUse[];
}

/** Ports at which a pod serves; a protocol without ports is missing. */
export type PodPorts = ReadonlyMap<Protocol, ReadonlySet<number>>;

/** A pod, for a count of its connections. */
export interface CountedPod {
  readonly addresses: readonly IpAddress[];
  readonly ports: PodPorts;
}

/**
 * Number of open connections to ports of a pod, by protocol; missing where the pod has no port, or where it cannot be counted.
 * - TCP: connections that are established, or half closed by the client, as the sockets of the pod's network namespace have them.
 * - UDP: flows of the node's connection tracking that had a packet in the last two seconds; up to three, because the kernel reports whole ones.
 * - SCTP: associations of the node's connection tracking that are set up, or shut down by one side.
 */
export type OpenConnections = Readonly<Partial<Record<Protocol, number>>>;

/** Open connections of a pod. */
export interface ConnectionsReply {
  readonly node: string;
  readonly open: OpenConnections;
  /** Why some cannot be counted. */
  readonly why?: string;
}

const protocols: readonly Protocol[] = ['TCP', 'UDP', 'SCTP'];

const openNames: Readonly<Record<Protocol, string>> = {
  TCP: 'TCP connections',
  UDP: 'UDP flows',
  SCTP: 'SCTP associations',
};

/** Such as `0 TCP connections, 2 UDP flows`. */
export function openText(open: OpenConnections): string {
  return protocols.flatMap((one) => (open[one] === undefined ? [] : [`${open[one]} ${openNames[one]}`])).join(', ');
}

/** The query of a count, for `connectionsPath`. */
export function connectionsQuery({ addresses, ports }: CountedPod): URLSearchParams {
  const query = new URLSearchParams({ pod: addresses.join(',') });
  for (const [protocol, numbers] of ports) query.set(protocol.toLowerCase(), [...numbers].join(','));
  return query;
}

/** Reads a query of `connectionsPath`; undefined for a wrong one. */
export function parseConnectionsQuery(query: URLSearchParams): CountedPod | undefined {
  const listOf = (name: string): readonly string[] => (query.get(name) ?? '').split(',').filter((text) => text !== '');
  const addresses = listOf('pod').map((text) => tryParseIp(text));
  const known = addresses.filter((address) => address !== undefined);
  const lists = protocols.map((protocol) => [protocol, listOf(protocol.toLowerCase()).map(Number)] as const);
  const ports = new Map(lists.flatMap(([protocol, list]) => (list.length === 0 ? [] : [[protocol, new Set(list)]])));
  const areValid = [...ports.values()].every((list) => [...list].every((port) => port > 0 && port < 65_536));
  const areKnown = [...query.keys()].every(
    (name) => name === 'pod' || protocols.some((one) => one.toLowerCase() === name),
  );
  if (known.length === 0 || known.length < addresses.length || !areValid || !areKnown) return undefined;
  return { addresses: known, ports };
}

/** The query of a question, for `nodePath`. */
export function nodeQuery({ after, services, timeout }: NodeQuestion): URLSearchParams {
  const query = new URLSearchParams({ after: String(after), seconds: String(Math.ceil(timeout / 100) / 10) });
  for (const service of services) query.append('service', service);
  return query;
}

/** Reads a query of `nodePath`; the result is the fault as text for a wrong one. */
export function parseNodeQuery(query: URLSearchParams): NodeQuestion | string {
  for (const name of query.keys()) {
    if (!['after', 'service', 'seconds'].includes(name)) return `unknown parameter ${JSON.stringify(name)}`;
  }
  const after = query.get('after') ?? '0';
  if (!/^\d{1,15}$/.test(after)) return `after ${JSON.stringify(after)} is no resourceVersion`;
  const time = query.get('seconds') ?? '0';
  const duration = Number(time);
  if (!/^\d+(?:\.\d+)?$/.test(time) || duration > maxNodeWait) {
    return `seconds ${JSON.stringify(time)} is no number from 0 to ${maxNodeWait}`;
  }
  const services = query.getAll('service');
  if (services.length > maxServices) return `${services.length} services are more than ${maxServices}`;
  const odd = services.find((service) => !/^[^/]+\/[^/]+$/.test(service));
  if (odd !== undefined) return `service ${JSON.stringify(odd)} is not NAMESPACE/NAME`;
  return { after: Number(after), services: services as ServiceKey[], timeout: seconds(duration) }; // they have the form of keys
}
