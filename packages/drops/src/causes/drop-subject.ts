import {
  type DataplaneTraits,
  type ForwardingTable,
  type IpAddress,
  type IpFamily,
  type ServiceForwarding,
  cidrContains,
} from '@switchyard/core';
import type { PlacedDrop } from '../kernel/drop-counter.ts';
import type { PacketPlace } from '../kernel/kernel-functions.ts';
import type { ServerPlace, ServiceIndex } from './service-index.ts';

/** Facts about a node, to explain its drops. */
export interface NodeView {
  /** Forwarding of the drop's IP family. */
  readonly table: ForwardingTable;
  /** The table at the last reading, if the packet may have met its rules. */
  readonly tableBefore: ForwardingTable | undefined;
  /** The table when the packet was dropped: a reading comes up to half a second later. */
  readonly tableThen: ForwardingTable;
  /** Follows `table`. */
  readonly index: ServiceIndex;
  /** Follows `tableBefore`, if there is one. */
  readonly indexBefore: ServiceIndex | undefined;
  readonly traits: DataplaneTraits;
  /** Addresses of this node's interfaces. */
  readonly nodeAddresses: ReadonlySet<IpAddress>;
  /** Those with NodePorts that they had since the watch began, and no longer have. */
  readonly formerAddresses: ReadonlySet<IpAddress>;
  /** Cookie of the node's own network namespace. */
  readonly netns: number;
  /** Since the last reading: new flows for which connection tracking had no room, and those that clashed with another. */
  readonly conntrack: { readonly full: number; readonly clashes: number };
  /** TTL or hop limit of packets that the node itself sends. */
  readonly firstHops: number;
  /** Chains of other programs at a hook, as `family table chain`. Default: unknown. */
  readonly chainsAt?: ((hook: PacketPlace, ipFamily: IpFamily) => readonly string[]) | undefined;
}

/** Bits of TCP. */
export const tcpFlagBits = { syn: 2, reset: 4, ack: 16, data: 128 } as const;

/** A drop with the Services it belongs to. */
export interface Subject {
  readonly drop: PlacedDrop;
  readonly view: NodeView;
  /** Server's side as the client addressed it, as far as this node knows. */
  readonly asked: ServerPlace;
  readonly client: IpAddress;
  /** At least one, unless `asked` is an address of a ServiceCIDR. */
  readonly services: readonly ServiceForwarding[];
  /** Whether `asked` is an endpoint of `services`, and not a frontend. */
  readonly isEndpoint: boolean;
  /** Whether the Service does not have this endpoint any more. */
  readonly isFormer: boolean;
  readonly isNode: boolean;
}

/** A guessed direction yields to the one in which the server's side is a Service's. */
export function subjectOf(drop: PlacedDrop, view: NodeView): Subject | undefined {
  if (!drop.isDirectionGuessed || (drop.tcpFlags & tcpFlagBits.syn) !== 0) return directedSubject(drop, view);
  return (
    directedSubject({ ...drop, direction: 'request' }, view) ?? directedSubject({ ...drop, direction: 'answer' }, view)
  );
}

function directedSubject(drop: PlacedDrop, view: NodeView): Subject | undefined {
  if (drop.sourcePort === 0 || drop.destinationPort === 0) return undefined; // of no Service, but anyone can send it
  const isRequest = drop.direction === 'request';
  const server = isRequest
    ? { address: drop.destination, port: drop.destinationPort }
    : { address: drop.source, port: drop.sourcePort };
  const { protocol, flow } = drop;
  const asked = { protocol, ...(flow ?? server), address: flow?.address ?? server.address };
  const client = flow?.client ?? (isRequest ? drop.source : drop.destination);
  const isNode = drop.netns === view.netns || drop.netns === 0;
  const base = { drop, view, asked, client, isNode, isFormer: false };
  const service = view.index.serviceAt(asked, view.nodeAddresses.has(asked.address));
  if (service !== undefined) return { ...base, services: [service], isEndpoint: false };
  const formerly = view.formerAddresses.has(asked.address) ? view.index.serviceAt(asked, true) : undefined;
  if (formerly !== undefined) return { ...base, services: [formerly], isEndpoint: false };
  const owners = view.index.servicesOfEndpoint(asked);
  if (owners.length > 0) return { ...base, services: owners, isEndpoint: true };
  const former = view.indexBefore?.servicesOfEndpoint(asked) ?? [];
  if (former.length > 0) return { ...base, services: former, isEndpoint: true, isFormer: true };
  const others = view.index.servicesWithClusterIp(asked.address);
  const isServiceAddress =
    others.length > 0 || view.table.serviceCidrs.some((cidr) => cidrContains(cidr, asked.address));
  return isServiceAddress && isRequest ? { ...base, services: others, isEndpoint: false } : undefined;
}
