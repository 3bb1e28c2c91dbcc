import type { ForwardingTable, Frontend, ServiceForwarding } from '../forwarding/forwarding-table.ts';
import type { IpAddress } from '../ip/address.ts';
import { cidrContains } from '../ip/cidr.ts';
import type { Port } from '../ip/port.ts';
import type { ServicePortKey } from '../records/keys.ts';
import type { FormerEndpoints } from './former-endpoints.ts';
import { placeOf, servingPlaces } from './place-of.ts';

/** One UDP entry of the kernel's connection tracking, of either family. */
export interface UdpFlow {
  readonly source: IpAddress;
  readonly sourcePort: Port;
  /** Where the client sent to, before any translation. */
  readonly destination: IpAddress;
  readonly destinationPort: Port;
  /** Who answers: the endpoint if the flow was translated, else the destination itself. */
  readonly replySource: IpAddress;
  readonly replySourcePort: Port;
}

/** What decides whether a flow is stale. */
export interface StaleFlowOptions {
  readonly table: ForwardingTable;
  /** Whether an address is one of this node's, loopback excluded. */
  readonly isLocalAddress: (address: IpAddress) => boolean;
  /** Services whose flows are left alone, because the kernel does not do what the table says. */
  readonly except?: Pick<ReadonlySet<ServicePortKey>, 'has'> | undefined;
  /** Endpoints to which the kernel translated a moment ago, of removed frontends. Default: none. */
  readonly former?: readonly FormerEndpoints[];
}

/** Tells stale flows from others. */
export interface FlowJudge {
  /** No flow to another port can be stale: a cheap question to ask first. Empty: no flow can. */
  readonly destinationPorts: ReadonlySet<Port>;
  readonly isStale: (flow: UdpFlow) => boolean;
}

/**
 * Which flows are to be deleted: those to a UDP frontend of the table that lead to anything but an
 * endpoint that still serves, and those to a removed frontend that lead to an endpoint it had.
 * UDP has no handshake that would notice: a client that keeps sending from one port would talk to a
 * dead address for as long as it sends.
 *
 * - A flow to any serving endpoint of the service stays, whatever policy or topology prefers now.
 * - A service without a serving endpoint loses all its flows.
 * - A flow that was never translated counts too: it began before the service had an endpoint.
 * - A NodePort is compared only for destinations on which this node answers NodePorts. Others merely
 *   pass through with the same port number. A removed one is compared on every address of this
 *   node, because the selection of addresses may have changed with it.
 * - Flows to anything else, TCP and SCTP are nobody's business here.
 */
export function flowJudge({ table, isLocalAddress, except, former = [] }: StaleFlowOptions): FlowJudge {
  const places: Places<ServiceForwarding> = new Map();
  for (const service of table.services.values()) {
    if (service.protocol !== 'UDP' || except?.has(service.key) === true) continue;
    for (const { address, port } of service.frontends) portOf(places, port).set(address, service);
  }
  const formerPlaces = joinFormer(former);
  const isNodePortAddress = (address: IpAddress): boolean =>
    isLocalAddress(address) && table.nodePortCidrs.some((cidr) => cidrContains(cidr, address));
  const servingByService = new Map<ServiceForwarding, ReadonlySet<string>>();
  return {
    destinationPorts: new Set([...places.keys(), ...formerPlaces.keys()]),
    isStale: (flow) => {
      const answeredBy = placeOf(flow.replySource, flow.replySourcePort);
      const service = find(places, flow, isNodePortAddress);
      if (service === undefined) return find(formerPlaces, flow, isLocalAddress)?.has(answeredBy) === true;
      const serving = servingByService.get(service) ?? servingPlaces(service);
      servingByService.set(service, serving);
      return !serving.has(answeredBy);
    },
  };
}

type Places<T> = Map<Port, Map<Frontend['address'], T>>;

function portOf<T>(places: Places<T>, port: Port): Map<Frontend['address'], T> {
  const ofPort = places.get(port) ?? new Map<Frontend['address'], T>();
  places.set(port, ofPort);
  return ofPort;
}

/** By place; two Services may have had the same one after another. */
function joinFormer(former: readonly FormerEndpoints[]): Places<ReadonlySet<string>> {
  const places: Places<ReadonlySet<string>> = new Map();
  for (const { address, port, endpoints } of former) {
    const ofPort = portOf(places, port);
    ofPort.set(address, ofPort.get(address)?.union(endpoints) ?? endpoints);
  }
  return places;
}

/** The entry of the flow's destination: of the address itself, else of the NodePort if `isNodePort` accepts the address. */
function find<T>(
  places: Places<T>,
  { destination, destinationPort }: UdpFlow,
  isNodePort: (address: IpAddress) => boolean,
): T | undefined {
  const ofPort = places.get(destinationPort);
  const exact = ofPort?.get(destination);
  if (exact !== undefined) return exact;
  const any = ofPort?.get('anyNodePortAddress');
  return any !== undefined && isNodePort(destination) ? any : undefined;
}

/**
 * Whether stale flows may be left when `after` takes the place of `before` (undefined: unknown). An
 * endpoint more, or one that begins to terminate and still serves, leaves none. Frontends that go are
 * found by `formerEndpoints`.
 */
export function canLeaveStaleFlows(before: ServiceForwarding | undefined, after: ServiceForwarding): boolean {
  if (after.protocol !== 'UDP') return false;
  if (before === undefined || before.protocol !== 'UDP') return true;
  const places = new Set(before.frontends.map(({ address, port }) => placeOf(address, port)));
  if (after.frontends.some(({ address, port }) => !places.has(placeOf(address, port)))) return true;
  const serving = servingPlaces(before);
  return serving.size === 0 || !serving.isSubsetOf(servingPlaces(after));
}
