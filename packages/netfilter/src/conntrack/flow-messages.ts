import type { IpFamily } from '@switchyard/core';
import { type MessageWriter, NLM_F } from '@switchyard/native';

/** Numbers of linux/netfilter/nfnetlink_conntrack.h, as far as they are used here. */
export const conntrack = {
  subsystem: 1, // NFNL_SUBSYS_CTNETLINK
  get: 1, // IPCTNL_MSG_CT_GET
  delete: 2,
  getStatistics: 5,
  tupleOrig: 1, // CTA_TUPLE_ORIG, and so on
  tupleReply: 2,
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
  filterOrigFlags: 1, // within CTA_FILTER
  filterReplyFlags: 2,
  globalEntries: 1, // CTA_STATS_GLOBAL_ENTRIES
} as const;

/** CTA_FILTER_FLAG(CTA_PROTO_NUM), which no exported header has: compare the protocol of the original tuple. */
const compareProtocol = 1 << 3;

/** IPPROTO_UDP */
export const udp = 17;
/** AF_INET, AF_INET6; AF_UNSPEC selects both. */
export const addressFamilies: Readonly<Record<IpFamily, number>> = { IPv4: 2, IPv6: 10 };
const anyFamily = 0;

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
  writer.beginMessage({ type: (conntrack.subsystem << 8) | type, flags, sequence });
}
