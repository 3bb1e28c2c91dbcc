import {
  addressAndPort,
  endpointUse,
  type IpFamily,
  ipFamilyOf,
  type Port,
  type ServiceForwarding,
} from '@switchyard/core';
import { causes } from './causes/causes.ts';
import type { Loss } from './causes/explain-drop.ts';
import type { ServiceIndex } from './causes/service-index.ts';
import type { UnansweredFlow } from './kernel/unanswered-flows.ts';
import type { ServiceView } from './loss-reader.ts';

/** Readings of drops for which a loss stands for the same connection. */
const remembered = 10;

/** Reason of the kernel with which it drops a segment to a port without a listener, and answers with a reset (tcp_v4_rcv). */
const answeredWithReset = 'NO_SOCKET';

/**
 * Connections to endpoints that their Service does not have any more, and that wait for an answer. Often no node drops their packets: the
 * address of a deleted pod leads to the default gateway.
 */
export class WaitingFlows {
  readonly #list: () => readonly UnansweredFlow[];
  /** Waiting at the last reading: an answer takes a moment. Undefined before the first. */
  #before: ReadonlySet<number> | undefined;
  #reported: ReadonlySet<number> = new Set();
  /** Packets that were dropped, of the last readings; each stands for one connection that waits. */
  readonly #dropped: (readonly DroppedPackets[])[] = [];

  constructor(list: () => readonly UnansweredFlow[]) {
    this.#list = list;
  }

  /** Notes the losses that a reading of drops found: their connections wait, too, except for refused ones. */
  noteDrops(losses: readonly Loss[]): void {
    this.#dropped.push(
      losses
        .filter(({ reason }) => reason !== answeredWithReset)
        .map(({ client, service, frontend, count }) => ({ key: `${client} ${service} ${frontend}`, left: count })),
    );
    if (this.#dropped.length > remembered) this.#dropped.shift();
  }

  /**
   * Connections that wait since the reading before; those of the first reading never count. `indexes` follow the view's tables. Throws
   * `HostError`.
   */
  read(view: ServiceView, indexes: ReadonlyMap<IpFamily, ServiceIndex>): readonly Loss[] {
    const dropped = this.#dropped.flat();
    const before = this.#before;
    const flows = this.#list();
    const now = new Set(flows.map(({ id }) => id));
    const reported = new Set([...(before === undefined ? now : this.#reported)].filter((id) => now.has(id)));
    const found: Loss[] = [];
    for (const flow of flows) {
      const isWaiting = before?.has(flow.id) === true && !reported.has(flow.id);
      const service = isWaiting ? serviceWithoutEndpoint(flow, view, indexes) : undefined;
      if (service === undefined) continue;
      reported.add(flow.id);
      if (!takeDropped(dropped, flow, service)) found.push(lossOf(flow, service, view));
    }
    this.#before = now;
    this.#reported = reported;
    return found;
  }

  /** Connections of one client to one place that wait at this moment and began after the first reading. Throws `HostError`. */
  waitingOf(asked: AskedPlace, view: ServiceView, indexes: ReadonlyMap<IpFamily, ServiceIndex>): readonly Loss[] {
    return this.#list()
      .filter(
        ({ id, client, address, port }) =>
          !this.#reported.has(id) && client === asked.client && address === asked.address && port === asked.port,
      )
      .flatMap((flow) => {
        const service = serviceWithoutEndpoint(flow, view, indexes);
        return service === undefined ? [] : [lossOf(flow, service, view)];
      });
  }
}

/** A client, and the place that it asked over TCP. */
export type AskedPlace = Pick<UnansweredFlow, 'client' | 'address' | 'port'>;

/** Packets of a client to a place of a Service. */
interface DroppedPackets {
  readonly key: string;
  left: number;
}

/** Takes a dropped packet that may be of this connection, to what the client asked or to the endpoint; false if none is left. */
function takeDropped(
  dropped: readonly DroppedPackets[],
  { client, address, port, endpoint, endpointPort }: UnansweredFlow,
  { key }: ServiceForwarding,
): boolean {
  const places = [addressAndPort(address, port as Port), addressAndPort(endpoint, endpointPort as Port)]; // ports of packets
  const keys = new Set(places.map((place) => `${client} ${key} ${place}/TCP`));
  const packets = dropped.find((one) => one.left > 0 && keys.has(one.key));
  if (packets === undefined) return false;
  packets.left--;
  return true;
}

/** The Service that was asked, if it does not have the endpoint of the connection. */
function serviceWithoutEndpoint(
  { address, port, endpoint, endpointPort }: UnansweredFlow,
  { nodeAddresses }: ServiceView,
  indexes: ReadonlyMap<IpFamily, ServiceIndex>,
): ServiceForwarding | undefined {
  const isOfNode = nodeAddresses.includes(address);
  const service = indexes.get(ipFamilyOf(address))?.serviceAt({ protocol: 'TCP', address, port }, isOfNode);
  if (service === undefined) return undefined;
  return endpointUse(service, { address: endpoint, port: endpointPort }) === undefined ? service : undefined;
}

function lossOf(flow: UnansweredFlow, { key }: ServiceForwarding, { proxyLag }: ServiceView): Loss {
  const endpoint = addressAndPort(flow.endpoint, flow.endpointPort as Port); // ports of packets
  const cause = proxyLag > 0 ? 'staleRule' : 'staleFlow';
  return {
    cause,
    why: `a connection waits for an answer from ${endpoint}, which is no endpoint of ${key} any more`,
    advice: causes[cause],
    certainty: 'likely',
    service: key,
    services: [key],
    frontend: `${addressAndPort(flow.address, flow.port as Port)}/TCP`,
    client: flow.client,
    direction: 'request',
    where: { netns: 'node', hook: undefined },
    reason: 'UNREPLIED',
    count: 1,
  };
}
