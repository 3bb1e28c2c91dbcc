import { type IpAddress, type IpFamily, ipFamilyOf, ipToBytes } from '@switchyard/core';
import { type MessageWriter, NLM_F } from '@switchyard/native';

/** Numbers of linux/netfilter/nfnetlink_conntrack.h, as far as they are used here. */
export const conntrack = {
  subsystem: 1, // NFNL_SUBSYS_CTNETLINK
  get: 1, // IPCTNL_MSG_CT_GET
  delete: 2,
  getStatistics: 5,
  tupleOrig: 1, // CTA_TUPLE_ORIG, and so on
  tupleReply: 2,
  status: 3,
  protocolInfo: 4,
  timeout: 7,
  id: 12,
  zone: 18,
  filter: 25,
  tupleIp: 1, // within a tuple
  tupleProto: 2,
  ipV4Source: 1, // within CTA_TUPLE_IP
  ipV4Destination: 2,
  ipV6Source: 3,
  ipV6Destination: 4,
  protoNumber: 1, // within CTA_TUPLE_PROTO
  protoSourcePort: 2,
  protoDestinationPort: 3,
  sctpInfo: 3, // within CTA_PROTOINFO
  sctpState: 1,
  filterOrigFlags: 1, // within CTA_FILTER
  filterReplyFlags: 2,
  globalEntries: 1, // CTA_STATS_GLOBAL_ENTRIES
} as const;

/** CTA_FILTER_FLAG(CTA_PROTO_NUM) and CTA_FILTER_FLAG(CTA_IP_SRC), which no exported header has: parts of a tuple to compare. */
const compareProtocol = 1 << 3;
const compareSource = 1 << 0;

/** IPPROTO_UDP, IPPROTO_SCTP */
export const udp = 17;
export const sctp = 132;
/** AF_INET, AF_INET6; AF_UNSPEC selects both. */
export const addressFamilies: Readonly<Record<IpFamily, number>> = { IPv4: 2, IPv6: 10 };
export const anyFamily = 0;
/** Types of requests: all entries, and the number of entries. */
export const getEntries: number = typeOf(conntrack.get);
export const getStatistics: number = typeOf(conntrack.getStatistics);

/** Requests entries: only UDP flows of a family where the kernel filters (5.8), or all of all protocols. */
export function writeList(writer: MessageWriter, ipFamily: IpFamily | undefined): void {
  begin(writer, conntrack.get, NLM_F.REQUEST | NLM_F.DUMP);
  writer.netfilterHeader(ipFamily === undefined ? anyFamily : addressFamilies[ipFamily], 0);
  if (ipFamily !== undefined) {
    const protocol = (): void => writer.attributeUint8(conntrack.protoNumber, udp);
    writer.nested(conntrack.tupleOrig, () => writer.nested(conntrack.tupleProto, protocol));
    writer.nested(conntrack.filter, () => {
      writer.attributeUint32(conntrack.filterOrigFlags, compareProtocol);
      writer.attributeUint32(conntrack.filterReplyFlags, 0);
    });
  }
  writer.endMessage();
}

/**
 * Body of a request (`getEntries`) for the entries of a protocol that an IPv4 address answers; of IPv6 those of all addresses, since the kernel compares IPv6 addresses
 * the wrong way round (seen in Linux 6.18). Before 5.8 it filters nothing.
 */
export function writeAnswered(writer: MessageWriter, address: IpAddress, protocol: number): void {
  const ipFamily = ipFamilyOf(address);
  writer.netfilterHeader(addressFamilies[ipFamily], 0);
  writer.nested(conntrack.tupleReply, () => {
    const source = ipFamily === 'IPv4' ? conntrack.ipV4Source : conntrack.ipV6Source;
    writer.nested(conntrack.tupleIp, () => writer.attributeBytes(source, ipToBytes(address)));
    writer.nested(conntrack.tupleProto, () => writer.attributeUint8(conntrack.protoNumber, protocol));
  });
  writer.nested(conntrack.filter, () => {
    writer.attributeUint32(conntrack.filterOrigFlags, 0);
    writer.attributeUint32(conntrack.filterReplyFlags, compareProtocol | (ipFamily === 'IPv4' ? compareSource : 0));
  });
}

/** Requests the number of entries in this network namespace. */
export function writeGetStatistics(writer: MessageWriter): void {
  begin(writer, conntrack.getStatistics, NLM_F.REQUEST);
  writer.netfilterHeader(anyFamily, 0);
  writer.endMessage();
}

/** The kernel answers only if it cannot. Without the tuple in `handle` it would delete every entry. */
export function writeDelete(writer: MessageWriter, ipFamily: IpFamily, handle: Uint8Array): void {
  begin(writer, conntrack.delete, NLM_F.REQUEST);
  writer.netfilterHeader(addressFamilies[ipFamily], 0);
  writer.raw(handle);
  writer.endMessage();
}

/** The sequence number of every request here: a socket has one conversation. */
export const sequence = 1;

function begin(writer: MessageWriter, type: number, flags: number): void {
  writer.beginMessage({ type: typeOf(type), flags, sequence });
}

function typeOf(request: number): number {
  return (conntrack.subsystem << 8) | request;
}
