import type { Endpoint, ForwardingTable, ServiceForwarding } from '../forwarding/forwarding-table.ts';
import type { IpAddress } from '../ip/address.ts';
import { cidrContains } from '../ip/cidr.ts';
import type { Port } from '../ip/port.ts';
import type { ServicePortKey } from '../records/keys.ts';

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
  readonly except?: ReadonlySet<ServicePortKey> | undefined;
}

/**
 * The flows to delete, in the order given: those to a UDP frontend of the table that lead to anything
 * but an endpoint that still serves. UDP has no handshake that would notice: a client that keeps
 * sending from one port would talk to a dead address for as long as it sends.
 *
 * - A flow to any serving endpoint of the service stays, whatever policy or topology prefers now.
 * - A service without a serving endpoint loses all its flows.
 * - A flow that was never translated counts too: it began before the service had an endpoint.
 * - A NodePort is compared only for destinations on which this node answers NodePorts. Others merely
 *   pass through with the same port number.
 * - Flows to anything else, TCP and SCTP are nobody's business here.
 */
export function staleFlows(flows: Iterable<UdpFlow>, options: StaleFlowOptions): readonly UdpFlow[] {
  const services = udpFrontends(options);
  if (services.size === 0) return [];
  const stale: UdpFlow[] = [];
  for (const flow of flows) {
    const service =
      services.get(placeOf(flow.destination, flow.destinationPort)) ?? nodePortOf(flow, services, options);
    if (service !== undefined && !leadsToServing(flow, service.knownEndpoints)) stale.push(flow);
  }
  return stale;
}

function udpFrontends({ table, except }: StaleFlowOptions): ReadonlyMap<string, ServiceForwarding> {
  const places = new Map<string, ServiceForwarding>();
  for (const service of table.services.values()) {
    if (service.protocol !== 'UDP' || except?.has(service.key) === true) continue;
    for (const { address, port } of service.frontends) places.set(placeOf(address, port), service);
  }
  return places;
}

function nodePortOf(
  flow: UdpFlow,
  services: ReadonlyMap<string, ServiceForwarding>,
  { table, isLocalAddress }: StaleFlowOptions,
): ServiceForwarding | undefined {
  const service = services.get(placeOf('anyNodePortAddress', flow.destinationPort));
  if (service === undefined || !isLocalAddress(flow.destination)) return undefined;
  return table.nodePortCidrs.some((cidr) => cidrContains(cidr, flow.destination)) ? service : undefined;
}

function leadsToServing(flow: UdpFlow, endpoints: readonly Endpoint[]): boolean {
  return endpoints.some((one) => one.serving && one.address === flow.replySource && one.port === flow.replySourcePort);
}

function placeOf(address: IpAddress | 'anyNodePortAddress', port: Port): string {
  return `${address} ${port}`;
}
