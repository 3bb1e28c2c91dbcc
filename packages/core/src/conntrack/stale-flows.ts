import type { ForwardingTable, Frontend, ServiceForwarding } from '../forwarding/forwarding-table.ts';
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
  readonly except?: Pick<ReadonlySet<ServicePortKey>, 'has'> | undefined;
}

/** Tells stale flows from others. */
export interface FlowJudge {
  /** No flow to another port can be stale: a cheap question to ask first. Empty: no flow can. */
  readonly destinationPorts: ReadonlySet<Port>;
  readonly isStale: (flow: UdpFlow) => boolean;
}

/**
 * Which flows are to be deleted: those to a UDP frontend of the table that lead to anything but an
 * endpoint that still serves. UDP has no handshake that would notice: a client that keeps sending from
 * one port would talk to a dead address for as long as it sends.
 *
 * - A flow to any serving endpoint of the service stays, whatever policy or topology prefers now.
 * - A service without a serving endpoint loses all its flows.
 * - A flow that was never translated counts too: it began before the service had an endpoint.
 * - A NodePort is compared only for destinations on which this node answers NodePorts. Others merely
 *   pass through with the same port number.
 * - Flows to anything else, TCP and SCTP are nobody's business here.
 */
export function flowJudge({ table, isLocalAddress, except }: StaleFlowOptions): FlowJudge {
  const places = new Map<Port, Map<Frontend['address'], ServiceForwarding>>();
  for (const service of table.services.values()) {
    if (service.protocol !== 'UDP' || except?.has(service.key) === true) continue;
    for (const { address, port } of service.frontends) {
      const services = places.get(port) ?? new Map<Frontend['address'], ServiceForwarding>();
      places.set(port, services.set(address, service));
    }
  }
  const serviceOf = ({ destination, destinationPort }: UdpFlow): ServiceForwarding | undefined => {
    const services = places.get(destinationPort);
    const exact = services?.get(destination);
    if (exact !== undefined) return exact;
    const service = services?.get('anyNodePortAddress');
    if (service === undefined || !isLocalAddress(destination)) return undefined;
    return table.nodePortCidrs.some((cidr) => cidrContains(cidr, destination)) ? service : undefined;
  };
  const servingByService = new Map<ServiceForwarding, ReadonlySet<string>>();
  return {
    destinationPorts: new Set(places.keys()),
    isStale: (flow) => {
      const service = serviceOf(flow);
      if (service === undefined) return false;
      const serving = servingByService.get(service) ?? servingEndpoints(service);
      servingByService.set(service, serving);
      return !serving.has(placeOf(flow.replySource, flow.replySourcePort));
    },
  };
}

/**
 * Whether stale flows may be left when `after` takes the place of `before` (undefined: unknown). An
 * endpoint more, or one that begins to terminate and still serves, leaves none. A service that is gone
 * leaves none either: nobody judges its flows any more.
 */
export function canLeaveStaleFlows(before: ServiceForwarding | undefined, after: ServiceForwarding): boolean {
  if (after.protocol !== 'UDP') return false;
  if (before === undefined || before.protocol !== 'UDP') return true;
  const places = new Set(before.frontends.map(({ address, port }) => placeOf(address, port)));
  if (after.frontends.some(({ address, port }) => !places.has(placeOf(address, port)))) return true;
  const serving = servingEndpoints(before);
  return serving.size === 0 || !serving.isSubsetOf(servingEndpoints(after));
}

function servingEndpoints({ knownEndpoints }: ServiceForwarding): ReadonlySet<string> {
  return new Set(knownEndpoints.flatMap(({ serving, address, port }) => (serving ? [placeOf(address, port)] : [])));
}

function placeOf(address: Frontend['address'], port: Port): string {
  return `${address} ${port}`;
}
