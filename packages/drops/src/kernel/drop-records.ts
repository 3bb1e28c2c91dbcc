import { type IpAddress, ipFromBytes, type Millis, millis, type Protocol } from '@switchyard/core';

/** Packets of one flow that the kernel dropped for one reason in one network namespace. */
export interface DropRecord {
  readonly protocol: Protocol;
  readonly source: IpAddress;
  readonly destination: IpAddress;
  /** Ports of the last packet; a record covers all client ports of a flow. */
  readonly sourcePort: number;
  readonly destinationPort: number;
  readonly direction: 'request' | 'answer';
  /** Without connection tracking the direction is guessed: by TCP flags, else by the lower port. */
  readonly isDirectionGuessed: boolean;
  /** Bits FIN 1, SYN 2, RST 4, ACK 16, and 128 for a segment with data; 0 for other protocols. */
  readonly tcpFlags: number;
  /** TTL or hop limit as it was dropped: each router on its way has taken one off. */
  readonly hops: number;
  /** Of connection tracking; undefined where it had none. */
  readonly flow: TrackedFlow | undefined;
  /** Cookie of the network namespace; 0: unknown. */
  readonly netns: number;
  /** `enum skb_drop_reason` without its prefix, such as `NETFILTER_DROP`. */
  readonly reason: string;
  /** Length of the last packet in bytes, with its IP header. */
  readonly length: number;
  readonly count: number;
  /** Time of the last packet, of CLOCK_MONOTONIC. */
  readonly last: Millis;
  /** Addresses of the kernel functions that led to the drop, innermost first; of the first packet. */
  readonly stack: readonly bigint[];
}

/** A flow as connection tracking sees it. */
export interface TrackedFlow {
  readonly client: IpAddress;
  /** Destination before translation. */
  readonly address: IpAddress;
  readonly port: number;
  /** Destination after translation. */
  readonly endpoint: IpAddress;
  readonly endpointPort: number;
  /** False for a flow whose first packet was dropped. */
  readonly isConfirmed: boolean;
  /** Whether packets of both directions passed. */
  readonly isAnswered: boolean;
}

/** Bytes of a record's key and value: `struct sy_drop_key` and `sy_drop_value` of `native/bpf/drops.h`. */
export const recordSizes = { key: 112, value: 104 } as const;

const stackDepth = 10;
const protocols: Readonly<Record<number, Protocol>> = { 6: 'TCP', 17: 'UDP', 132: 'SCTP' };
/** `SY_ANSWER` and `SY_GUESSED_ANSWER`. */
const answers: ReadonlySet<number> = new Set([2, 4]);
const firstGuess = 3;
/** IPS_SEEN_REPLY, IPS_CONFIRMED */
const status = { answered: 1 << 1, confirmed: 1 << 3 } as const;

/** Reads one record. `reasons`: names by number, see `readDropReasons`. */
export function readDropRecord(
  key: Uint8Array,
  value: Uint8Array,
  reasons: ReadonlyMap<number, string>,
): DropRecord | undefined {
  const from = viewOf(key);
  const at = viewOf(value);
  const protocol = protocols[from.getUint8(102)];
  if (protocol === undefined) return undefined;
  const direction = from.getUint8(104);
  const number = from.getUint32(96, true);
  return {
    protocol,
    source: addressAt(key, 0),
    destination: addressAt(key, 16),
    sourcePort: at.getUint16(100),
    destinationPort: at.getUint16(102),
    direction: answers.has(direction) ? 'answer' : 'request',
    isDirectionGuessed: direction >= firstGuess,
    tcpFlags: from.getUint8(103),
    hops: from.getUint8(105),
    flow: flowOf(key, direction),
    netns: Number(from.getBigUint64(88, true)),
    reason: reasons.get(number) ?? `reason ${number}`,
    length: at.getUint32(96, true),
    count: Number(at.getBigUint64(0, true)),
    last: millis(Number(at.getBigUint64(8, true) / 1000n) / 1000),
    stack: Array.from({ length: stackDepth }, (_, index) => at.getBigUint64(16 + 8 * index, true)).filter(
      (address) => address !== 0n,
    ),
  };
}

function flowOf(key: Uint8Array, direction: number): TrackedFlow | undefined {
  if (direction >= firstGuess) return undefined;
  const from = viewOf(key);
  const bits = from.getUint32(84, true);
  return {
    client: addressAt(key, 32),
    address: addressAt(key, 48),
    port: from.getUint16(80),
    endpoint: addressAt(key, 64),
    endpointPort: from.getUint16(82),
    isConfirmed: (bits & status.confirmed) !== 0,
    isAnswered: (bits & status.answered) !== 0,
  };
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Addresses have 16 bytes, IPv4 as ::ffff:a.b.c.d. */
function addressAt(bytes: Uint8Array, at: number): IpAddress {
  const isIpv4 =
    bytes.subarray(at, at + 10).every((byte) => byte === 0) && bytes[at + 10] === 0xff && bytes[at + 11] === 0xff;
  return ipFromBytes(bytes.subarray(isIpv4 ? at + 12 : at, at + 16));
}
