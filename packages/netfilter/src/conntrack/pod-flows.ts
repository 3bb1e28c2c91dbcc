import { readFileSync } from 'node:fs';
import { HostError, type IpAddress, ipToBytes, type Protocol } from '@switchyard/core';
import {
  type NetlinkAttribute,
  NetlinkAsker,
  type NetlinkMessage,
  openNetlinkSocket,
  readAttributes,
  readUint16be,
  readUint32be,
  type WriteBody,
} from '@switchyard/native';
import { anyFamily, conntrack, getEntries, getStatistics, sctp, udp, writeAnswered } from './flow-messages.ts';
import { readEntries } from './flow-table.ts';

/** Addresses of a pod, and ports at which it serves. */
export interface TrackedPod {
  readonly addresses: readonly IpAddress[];
  readonly ports: ReadonlyMap<Protocol, ReadonlySet<number>>;
}

/** Number of flows, for each protocol with ports. */
export type PodFlows = Readonly<Partial<Record<TrackedProtocol, number>>>;

type TrackedProtocol = 'UDP' | 'SCTP';

/** Seconds after its last packet in which a UDP flow is in use. */
const udpQuiet = 2;
/** IPS_ASSURED: packets went both ways for two seconds, and the longer time-out counts. */
const assured = 1 << 2;
/** States of an association that is set up, or that one side shuts down (SCTP_CONNTRACK_COOKIE_ECHOED to ..._SHUTDOWN_RECD). */
const openStates: ReadonlySet<number> = new Set([3, 4, 5, 6]);

/**
 * Counts what connection tracking has for ports of a pod that runs on this node: SCTP associations, and UDP flows that had a packet in the last
 * two seconds (up to three: the kernel reports whole seconds). One look through the table for each address and protocol, each within one system call. Throws `NativeError`,
 * and `HostError` where nothing is tracked or the table changes all the time.
 */
export function countPodFlows({ addresses, ports }: TrackedPod, netns?: string): PodFlows {
  using socket = openNetlinkSocket({ protocol: 'netfilter', netns });
  const asker = new NetlinkAsker(socket, {
    attempt: 'cannot count flows in the connection tracking',
    code: 'conntrack',
  });
  const entries = asker.get(getStatistics, (writer) => writer.netfilterHeader(anyFamily, 0), { read: readEntries });
  if (entries === 0) throw new HostError('conntrack.none', 'the kernel tracks no connections on this node');
  const timeouts = readTimeouts();
  const asked = (['UDP', 'SCTP'] as const).filter((protocol) => ports.has(protocol));
  const countOf = (protocol: TrackedProtocol): number => {
    const flows = addresses.flatMap((address) => {
      const wanted = { address: ipToBytes(address), protocol: protocolNumbers[protocol] };
      const body: WriteBody = (writer) => writeAnswered(writer, address, wanted.protocol);
      return asker.dump(getEntries, body, (bytes, message) => readFlow(bytes, message, wanted));
    });
    return flows.filter((flow) => ports.get(protocol)?.has(flow.port) === true && isOpen[protocol](flow, timeouts))
      .length;
  };
  return Object.fromEntries(asked.map((protocol) => [protocol, countOf(protocol)]));
}

interface Flow {
  /** Of the pod. */
  readonly port: number;
  readonly isAssured: boolean;
  /** Time until connection tracking forgets it, in seconds. */
  readonly rest: number;
  /** Of an association. */
  readonly state: number;
}

/** Time-outs of UDP flows in seconds: those of one side, or of a short exchange, and others. */
interface UdpTimeouts {
  readonly short: number;
  readonly long: number;
}

const isOpen: Readonly<Record<TrackedProtocol, (flow: Flow, timeouts: UdpTimeouts) => boolean>> = {
  UDP: ({ isAssured, rest }, { short, long }) => (isAssured ? long : short) - rest <= udpQuiet + 1,
  SCTP: ({ state }) => openStates.has(state),
};

/** Of this process's network namespace; the kernel's defaults where they cannot be read. */
function readTimeouts(): UdpTimeouts {
  const read = (name: string, usual: number): number => {
    try {
      return Number(readFileSync(`/proc/sys/net/netfilter/${name}`, 'utf8'));
    } catch {
      return usual;
    }
  };
  return { short: read('nf_conntrack_udp_timeout', 30), long: read('nf_conntrack_udp_timeout_stream', 120) };
}

const netfilterHeaderLength = 4;
const protocolNumbers: Readonly<Record<TrackedProtocol, number>> = { UDP: udp, SCTP: sctp };

type Span = readonly [start: number, end: number];

interface Answering {
  readonly address: Uint8Array;
  readonly protocol: number;
}

/** Undefined for another protocol or answering address. */
function readFlow(bytes: Uint8Array, { start, end }: NetlinkMessage, wanted: Answering): Flow | undefined {
  const entry: Span = [start + netfilterHeaderLength, end];
  const find = (within: Span | undefined, ...types: readonly number[]): Span | undefined =>
    types.reduce<Span | undefined>((span, type) => span && spanOf(bytes, span, type), within);
  const reply = find(entry, conntrack.tupleReply);
  const ip = find(reply, conntrack.tupleIp);
  const source = find(ip, conntrack.ipV4Source) ?? find(ip, conntrack.ipV6Source);
  if (source === undefined || Buffer.compare(bytes.subarray(...source), wanted.address) !== 0) return undefined;
  const proto = find(reply, conntrack.tupleProto);
  const [number] = find(proto, conntrack.protoNumber) ?? [];
  const [port] = find(proto, conntrack.protoSourcePort) ?? [];
  if (number === undefined || port === undefined || bytes[number] !== wanted.protocol) return undefined;
  const [status] = find(entry, conntrack.status) ?? [];
  const [rest] = find(entry, conntrack.timeout) ?? [];
  const [state] = find(entry, conntrack.protocolInfo, conntrack.sctpInfo, conntrack.sctpState) ?? [];
  return {
    port: readUint16be(bytes, port),
    isAssured: status !== undefined && (readUint32be(bytes, status) & assured) !== 0,
    rest: rest === undefined ? 0 : readUint32be(bytes, rest),
    state: state === undefined ? 0 : (bytes[state] ?? 0),
  };
}

function spanOf(bytes: Uint8Array, [start, end]: Span, type: number): Span | undefined {
  const found = readAttributes(bytes, start, end).find((attribute: NetlinkAttribute) => attribute.type === type);
  return found === undefined ? undefined : [found.start, found.end];
}
