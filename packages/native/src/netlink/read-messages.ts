import { HostError } from '@switchyard/core';
import { isLittleEndian } from './byte-order.ts';
import { attributeHeaderLength, messageHeaderLength } from './message-writer.ts';

/** One message of a datagram; `start` and `end` are the bounds of its content, without the header. */
export interface NetlinkMessage {
  readonly type: number;
  /** `NLM_F_...` */
  readonly flags: number;
  /** The sequence number of the message that this one answers; 0 for events. */
  readonly sequence: number;
  /** The port id of the socket that this one answers. */
  readonly portId: number;
  readonly start: number;
  readonly end: number;
}

/** The messages of one datagram, in order. Throws `HostError` for an impossible length. */
export function* readMessages(bytes: Uint8Array): Generator<NetlinkMessage, undefined, unknown> {
  for (let at = 0; at < bytes.length;) {
    const length = bytes.length - at < messageHeaderLength ? 0 : readUint32(bytes, at);
    const end = at + length;
    if (length < messageHeaderLength || end > bytes.length) throw malformed('message', at, bytes.length);
    yield {
      type: readUint16(bytes, at + 4),
      flags: readUint16(bytes, at + 6),
      sequence: readUint32(bytes, at + 8),
      portId: readUint32(bytes, at + 12),
      start: at + messageHeaderLength,
      end,
    };
    at = aligned(end);
  }
  return undefined;
}

/** One attribute; `start` and `end` are the bounds of its value. */
export interface NetlinkAttribute {
  /** Without the flags for nesting and byte order. */
  readonly type: number;
  readonly start: number;
  readonly end: number;
}

/** The attributes between two offsets, in order. For long lists `AttributeCursor` makes no objects. */
export function* readAttributes(
  bytes: Uint8Array,
  start: number,
  end: number,
): Generator<NetlinkAttribute, undefined, unknown> {
  const cursor = new AttributeCursor();
  cursor.enter(bytes, start, end);
  while (cursor.next()) yield { type: cursor.type, start: cursor.start, end: cursor.end };
  return undefined;
}

/** Steps through attributes without making an object for each. One cursor per depth can be used for ever. */
export class AttributeCursor {
  /** Of the attribute that `next` went to, without the flags for nesting and byte order. */
  type = 0;
  /** Where its value begins. */
  start = 0;
  /** Where its value ends. */
  end = 0;
  #bytes: Uint8Array = new Uint8Array(0);
  #next = 0;
  #limit = 0;

  /** Stands before the first attribute between two offsets. */
  enter(bytes: Uint8Array, start: number, end: number): void {
    this.#bytes = bytes;
    this.#next = start;
    this.#limit = end;
  }

  /** Goes to the next attribute; false when there is none. Throws `HostError` for an impossible length. */
  next(): boolean {
    const at = this.#next;
    if (at >= this.#limit) return false;
    const length = this.#limit - at < attributeHeaderLength ? 0 : readUint16(this.#bytes, at);
    this.end = at + length;
    if (length < attributeHeaderLength || this.end > this.#limit) throw malformed('attribute', at, this.#limit);
    this.type = readUint16(this.#bytes, at + 2) & 0x3fff;
    this.start = at + attributeHeaderLength;
    this.#next = aligned(this.end);
    return true;
  }
}

/** The errno that an NLMSG_ERROR or NLMSG_DONE carries, positive; 0 is success. `start` is that of the message. */
export function readErrno(bytes: Uint8Array, start: number): number {
  return -(readUint32(bytes, start) | 0);
}

/** The next multiple of four. */
export function aligned(length: number): number {
  return (length + 3) & ~3;
}

/** Two bytes in the machine's order. */
export function readUint16(bytes: Uint8Array, at: number): number {
  return isLittleEndian ? byte(bytes, at) | (byte(bytes, at + 1) << 8) : readUint16be(bytes, at);
}

/** Four bytes in the machine's order. */
export function readUint32(bytes: Uint8Array, at: number): number {
  if (!isLittleEndian) return readUint32be(bytes, at);
  return (readUint16(bytes, at) | (readUint16(bytes, at + 2) << 16)) >>> 0;
}

/** Two bytes in network order. */
export function readUint16be(bytes: Uint8Array, at: number): number {
  return (byte(bytes, at) << 8) | byte(bytes, at + 1);
}

/** Four bytes in network order. */
export function readUint32be(bytes: Uint8Array, at: number): number {
  return ((readUint16be(bytes, at) << 16) | readUint16be(bytes, at + 2)) >>> 0;
}

/** Eight bytes in network order. */
export function readUint64be(bytes: Uint8Array, at: number): bigint {
  return (BigInt(readUint32be(bytes, at)) << 32n) | BigInt(readUint32be(bytes, at + 4));
}

/** ASCII text up to its NUL, or to `end`. */
export function readText(bytes: Uint8Array, start: number, end: number): string {
  let text = '';
  for (let at = start; at < end && bytes[at] !== 0; at++) text += String.fromCharCode(byte(bytes, at));
  return text;
}

/** Lengths were checked, so offsets are within the bytes. */
function byte(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}

function malformed(what: string, at: number, length: number): HostError {
  return new HostError(
    'netlink.malformed',
    `cannot read what the kernel sent by netlink: the ${what} at byte ${at} of ${length} has a length that cannot be true; ` +
      'report this as a defect',
  );
}
