import { constants } from 'node:os';
import { MessageWriter, NLMSG, openNetlinkSocket, readErrno, readMessages } from '@switchyard/native';

type MadeProtocol = 'udp' | 'tcp' | 'sctp';

/** Which entries to make. */
export interface MadeFlows {
  readonly netns: string;
  readonly protocol: MadeProtocol;
  readonly count: number;
  readonly destinationPort: number;
  /** Of an SCTP association (enum sctp_conntrack). Default 4: established. */
  readonly sctpState?: number;
}

const createMessage = (1 << 8) | 0; // NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_NEW
const flags = 0x001 | 0x200 | 0x400; // NLM_F_REQUEST | NLM_F_EXCL | NLM_F_CREATE
const perDatagram = 50;
const server = 0x0a_60_0a_0a; // 10.96.10.10, which answers

/** Puts IPv4 entries that never saw a packet into a namespace's connection tracking, each from another client. */
export function insertFlows({ netns, protocol, count, destinationPort, sctpState = 4 }: MadeFlows): void {
  using socket = openNetlinkSocket({ protocol: 'netfilter', netns });
  const writer = new MessageWriter();
  const buffer = new Uint8Array(1 << 16);
  for (let first = 0; first < count; first += perDatagram) {
    writer.clear();
    for (let index = first; index < Math.min(first + perDatagram, count); index++) {
      const [client, port] = [0x0b_00_00_01 + (index % 50_000), 1024 + Math.floor(index / 50_000)];
      writer.beginMessage({ type: createMessage, flags, sequence: index });
      writer.netfilterHeader(2, 0);
      writeTuple(writer, 1, protocol, [client, server, port, destinationPort]);
      writeTuple(writer, 2, protocol, [server, client, destinationPort, port]);
      writer.attributeUint32be(3, 8); // CTA_STATUS: confirmed
      writer.attributeUint32be(7, 600); // CTA_TIMEOUT, seconds
      if (protocol === 'tcp') writeEstablished(writer);
      if (protocol === 'sctp') writeAssociation(writer, sctpState);
      writer.endMessage();
    }
    socket.send(writer.bytes());
    for (let length = socket.receive(buffer); length !== undefined; length = socket.receive(buffer)) {
      for (const { type, start } of readMessages(buffer.subarray(0, length))) {
        const errno = type === NLMSG.ERROR ? readErrno(buffer, start) : 0;
        if (errno !== 0 && errno !== constants.errno.EEXIST) throw new Error(`no entry made: errno ${errno}`);
      }
    }
  }
}

const protocolNumbers: Readonly<Record<MadeProtocol, number>> = { udp: 17, tcp: 6, sctp: 132 };

type Places = readonly [source: number, destination: number, sourcePort: number, destinationPort: number];

function writeTuple(writer: MessageWriter, type: number, protocol: MadeProtocol, places: Places): void {
  const [source, destination, sourcePort, destinationPort] = places;
  const tuple = writer.beginNested(type);
  const ip = writer.beginNested(1);
  writer.attributeUint32be(1, source);
  writer.attributeUint32be(2, destination);
  writer.endAttribute(ip);
  const proto = writer.beginNested(2);
  writer.attributeUint8(1, protocolNumbers[protocol]);
  writer.attributeUint16be(2, sourcePort);
  writer.attributeUint16be(3, destinationPort);
  writer.endAttribute(proto);
  writer.endAttribute(tuple);
}

function writeEstablished(writer: MessageWriter): void {
  const info = writer.beginNested(4); // CTA_PROTOINFO
  const tcp = writer.beginNested(1);
  writer.attributeUint8(1, 3); // TCP_CONNTRACK_ESTABLISHED
  writer.endAttribute(tcp);
  writer.endAttribute(info);
}

function writeAssociation(writer: MessageWriter, state: number): void {
  writer.nested(4, () =>
    writer.nested(3, () => {
      writer.attributeUint8(1, state); // CTA_PROTOINFO_SCTP_STATE
      writer.attributeUint32be(2, 1); // its two tags
      writer.attributeUint32be(3, 2);
    }),
  );
}
