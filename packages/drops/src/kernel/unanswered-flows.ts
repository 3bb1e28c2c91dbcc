import { type IpAddress, ipFromBytes, type IpFamily } from '@switchyard/core';
import {
  addressFamilies,
  NetlinkAsker,
  openNetlinkSocket,
  readAttributes,
  readUint16be,
  readUint32be,
  type WriteBody,
} from '@switchyard/native';

/** A TCP connection that was translated and sent on, and of which connection tracking saw no answer. */
export interface UnansweredFlow {
  /** The kernel's number for this entry. */
  readonly id: number;
  readonly client: IpAddress;
  readonly clientPort: number;
  /** Place that the client asked. */
  readonly address: IpAddress;
  readonly port: number;
  /** Place that it was sent to. */
  readonly endpoint: IpAddress;
  readonly endpointPort: number;
}

/** Numbers of linux/netfilter/nfnetlink_conntrack.h: messages, attributes of an entry, of a tuple, of its parts. */
const getEntries = (1 << 8) | 1; // NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_GET
const entry = { original: 1, reply: 2, status: 3, id: 12, statusMask: 26 } as const;
const tuple = { addresses: 1, protocol: 2 } as const;
const part = { number: 1, sourcePort: 2, destinationPort: 3 } as const;
const addressParts: Readonly<Record<IpFamily, { readonly source: number; readonly destination: number }>> = {
  IPv4: { source: 1, destination: 2 },
  IPv6: { source: 3, destination: 4 },
};
const seenReply = 1 << 1; // IPS_SEEN_REPLY
const destinationTranslated = 1 << 5; // IPS_DST_NAT
const tcp = 6;
const headerLength = 4; // of nfgenmsg
const allFamilies = 0; // AF_UNSPEC: one walk over the table

/** Flows beyond these are not read. */
const maxFlows = 4096;

/**
 * Lists them in this network namespace. The kernel selects (Linux 5.15), but looks at each entry. Throws `HostError` without CAP_NET_ADMIN.
 */
export function listUnansweredFlows(): readonly UnansweredFlow[] {
  using socket = openNetlinkSocket({ protocol: 'netfilter' });
  const asker = new NetlinkAsker(socket, { attempt: 'cannot list tracked flows', code: 'conntrack' });
  const body: WriteBody = (writer) => {
    writer.netfilterHeader(allFamilies, 0);
    writer.attributeUint32be(entry.status, destinationTranslated);
    writer.attributeUint32be(entry.statusMask, destinationTranslated | seenReply);
  };
  let count = 0;
  return asker.dump(getEntries, body, (bytes, { start, end }) => {
    const flow = count < maxFlows ? readFlow(bytes, start, end) : undefined;
    if (flow !== undefined) count++;
    return flow;
  });
}

interface Place {
  readonly ipFamily: IpFamily;
  readonly start: number;
  readonly end: number;
}

/** Undefined for another protocol, or an entry that was answered. */
function readFlow(bytes: Uint8Array, start: number, end: number): UnansweredFlow | undefined {
  const ipFamily = bytes[start] === addressFamilies.IPv4 ? 'IPv4' : 'IPv6';
  const found = new Map(
    [...readAttributes(bytes, start + headerLength, end)].map((attribute) => [attribute.type, attribute]),
  );
  const [original, reply, status, id] = [entry.original, entry.reply, entry.status, entry.id].map((type) =>
    found.get(type),
  );
  if (original === undefined || reply === undefined || status === undefined || id === undefined) return undefined;
  if ((readUint32be(bytes, status.start) & seenReply) !== 0) return undefined;
  const sent = readTuple(bytes, { ...original, ipFamily });
  const answer = readTuple(bytes, { ...reply, ipFamily });
  if (sent === undefined || answer === undefined) return undefined;
  return {
    id: readUint32be(bytes, id.start),
    client: sent.source,
    clientPort: sent.sourcePort,
    address: sent.destination,
    port: sent.destinationPort,
    endpoint: answer.source,
    endpointPort: answer.sourcePort,
  };
}

interface Tuple {
  readonly source: IpAddress;
  readonly sourcePort: number;
  readonly destination: IpAddress;
  readonly destinationPort: number;
}

/** Undefined for another protocol than TCP. */
function readTuple(bytes: Uint8Array, { ipFamily, start, end }: Place): Tuple | undefined {
  const starts = new Map<string, number>();
  for (const outer of readAttributes(bytes, start, end)) {
    for (const { type, start: at } of readAttributes(bytes, outer.start, outer.end))
      starts.set(`${outer.type} ${type}`, at);
  }
  const names = addressParts[ipFamily];
  const [protocol, sourcePort, destinationPort] = [part.number, part.sourcePort, part.destinationPort].map((type) =>
    starts.get(`${tuple.protocol} ${type}`),
  );
  const [source, destination] = [names.source, names.destination].map((type) =>
    starts.get(`${tuple.addresses} ${type}`),
  );
  if (protocol === undefined || bytes[protocol] !== tcp || sourcePort === undefined || destinationPort === undefined) {
    return undefined;
  }
  if (source === undefined || destination === undefined) return undefined;
  const length = ipFamily === 'IPv4' ? 4 : 16;
  return {
    source: ipFromBytes(bytes.subarray(source, source + length)),
    sourcePort: readUint16be(bytes, sourcePort),
    destination: ipFromBytes(bytes.subarray(destination, destination + length)),
    destinationPort: readUint16be(bytes, destinationPort),
  };
}
