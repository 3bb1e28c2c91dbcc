import { constants } from 'node:os';
import { ipToBytes, millis, parseIp, systemClock } from '@switchyard/core';
import type { LabNode } from '@switchyard/lab';
import {
  MessageWriter,
  NativeError,
  type NetlinkSocket,
  NLM_F,
  NLMSG,
  openNetlinkSocket,
  readErrno,
  receiveAnswers,
} from '@switchyard/native';

/** An IPv4 flow to enter into connection tracking, as if both sides had sent. */
export interface EnteredFlow {
  readonly client: string;
  readonly clientPort: number;
  readonly address: string;
  readonly port: number;
}

/** ctnetlink: IPCTNL_MSG_CT_NEW; CTA_TUPLE_ORIG, CTA_TUPLE_REPLY, CTA_STATUS, CTA_TIMEOUT. */
const newEntry = 1 << 8;
const attributes = { original: 1, reply: 2, status: 3, timeout: 7 } as const;
/** IPS_SEEN_REPLY, IPS_ASSURED, IPS_CONFIRMED: the kernel does not give such a flow up for a new one. */
const status = (1 << 1) | (1 << 2) | (1 << 3);
const udp = 17;
const perMessage = 500;

/** Enters UDP flows that live for a minute into a node's connection tracking, until it has no room (ENOMEM). */
export async function enterFlows(node: LabNode, flows: Iterable<EnteredFlow>, signal: AbortSignal): Promise<void> {
  using socket = openNetlinkSocket({
    protocol: 'netfilter',
    netns: `/run/netns/${node.namespace}`,
    sendBuffer: 1 << 20,
    receiveBuffer: 1 << 20,
  });
  const writer = new MessageWriter();
  let waiting = 0;
  let isFull = false;
  const flush = async (): Promise<void> => {
    socket.send(writer.bytes());
    writer.clear();
    waiting = 0;
    isFull = refuses(socket);
    await systemClock.sleep(millis(0), signal);
  };
  for (const flow of flows) {
    writeFlow(writer, flow);
    if (++waiting === perMessage) await flush();
    if (isFull) return;
  }
  if (waiting > 0) await flush();
}

/** Whether the table has no room: the kernel says so for each flow, and may have no room for its answers either. */
function refuses(socket: NetlinkSocket): boolean {
  try {
    const errnos = [...receiveAnswers(socket)].map(([{ type, start }, bytes]) =>
      type === NLMSG.ERROR ? readErrno(bytes, start) : 0,
    );
    const other = errnos.find((errno) => errno !== 0 && errno !== constants.errno.ENOMEM);
    if (other !== undefined) throw new Error(`conntrack refused a flow: errno ${other}`);
    return errnos.includes(constants.errno.ENOMEM);
  } catch (error) {
    if (error instanceof NativeError && error.errno === constants.errno.ENOBUFS) return true;
    throw error;
  }
}

function writeFlow(writer: MessageWriter, { client, clientPort, address, port }: EnteredFlow): void {
  writer.beginMessage({ type: newEntry, flags: NLM_F.REQUEST | NLM_F.CREATE, sequence: 1 });
  writer.netfilterHeader(2, 0); // AF_INET
  writeTuple(writer, attributes.original, { from: [client, clientPort], to: [address, port] });
  writeTuple(writer, attributes.reply, { from: [address, port], to: [client, clientPort] });
  writer.attributeUint32be(attributes.status, status);
  writer.attributeUint32be(attributes.timeout, 60);
  writer.endMessage();
}

type Side = readonly [address: string, port: number];

function writeTuple(
  writer: MessageWriter,
  type: number,
  { from, to }: { readonly from: Side; readonly to: Side },
): void {
  writer.nested(type, () => {
    writer.nested(1, () => {
      writer.attributeBytes(1, ipToBytes(parseIp(from[0])));
      writer.attributeBytes(2, ipToBytes(parseIp(to[0])));
    });
    writer.nested(2, () => {
      writer.attributeUint8(1, udp);
      writer.attributeUint16be(2, from[1]);
      writer.attributeUint16be(3, to[1]);
    });
  });
}

/** Removes every flow of the node. */
export function flushFlows(node: LabNode): void {
  using socket = openNetlinkSocket({ protocol: 'netfilter', netns: `/run/netns/${node.namespace}` });
  const writer = new MessageWriter();
  writer.beginMessage({ type: (1 << 8) | 2, flags: NLM_F.REQUEST | NLM_F.ACK, sequence: 1 }); // IPCTNL_MSG_CT_DELETE without a tuple
  writer.netfilterHeader(0, 0);
  writer.endMessage();
  socket.send(writer.bytes());
}
