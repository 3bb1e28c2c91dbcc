import { InvariantError } from '@switchyard/core';
import { isLittleEndian } from './byte-order.ts';

/** Length of `struct nlmsghdr`. */
export const messageHeaderLength = 16;
/** Length of the header of an attribute. */
export const attributeHeaderLength = 4;
/** An attribute's length is 16 bits, its header included. */
export const maxAttributeLength = 0xffff;

/** Capacity beyond which `clear` replaces the buffer, so that one large load does not stay in memory. */
const keptCapacity = 1 << 20;
const firstCapacity = 1 << 14;
/** Set in the type of an attribute that holds attributes. */
export const nestedFlag = 0x8000;

/** Header of a message; `endMessage` fills in its length. */
export interface MessageHeader {
  readonly type: number;
  /** `NLM_F_...` */
  readonly flags: number;
  /** Comes back in every answer to this message. */
  readonly sequence: number;
}

/** Writes netlink messages into one growing buffer. Begin and end come in pairs. Names with `be` write network order. */
export class MessageWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  #view: DataView<ArrayBuffer>;
  #length = 0;
  #message = -1;

  constructor() {
    this.#bytes = new Uint8Array(firstCapacity);
    this.#view = new DataView(this.#bytes.buffer);
  }

  /** Bytes written since `clear`. */
  get length(): number {
    return this.#length;
  }

  /** Everything written since `clear`. A view: valid until the next write. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Starts over. */
  clear(): void {
    this.#length = 0;
    this.#message = -1;
    if (this.#bytes.length > keptCapacity) this.#resize(firstCapacity);
  }

  beginMessage({ type, flags, sequence }: MessageHeader): void {
    if (this.#message >= 0) throw new InvariantError('a netlink message begins before the one before it ends');
    this.#message = this.#length;
    this.uint32(0);
    this.uint16(type);
    this.uint16(flags);
    this.uint32(sequence >>> 0);
    this.uint32(0); // the kernel knows the sender
  }

  endMessage(): void {
    if (this.#message < 0) throw new InvariantError('a netlink message ends that did not begin');
    this.#view.setUint32(this.#message, this.#length - this.#message, isLittleEndian);
    this.#message = -1;
    this.pad();
  }

  /** Adds flags to a message that begins at `offset` and has ended. */
  addFlags(offset: number, flags: number): void {
    const at = offset + 6;
    this.#view.setUint16(at, this.#view.getUint16(at, isLittleEndian) | flags, isLittleEndian);
  }

  /** `struct nfgenmsg`, which every message of the netfilter protocol begins with. */
  netfilterHeader(family: number, resourceId: number): void {
    this.uint8(family);
    this.uint8(0); // NFNETLINK_V0
    this.uint16be(resourceId);
  }

  /** Begins an attribute and returns the argument for `endAttribute`. */
  beginAttribute(type: number): number {
    const start = this.#length;
    this.uint16(0);
    this.uint16(type);
    return start;
  }

  /** The header of an attribute whose value, of `length` bytes, is written next; `pad` ends it. For hot paths. */
  attributeHeader(type: number, length: number): void {
    this.uint16(attributeHeaderLength + length);
    this.uint16(type);
  }

  /** Begins an attribute that holds attributes; ended by `endAttribute`. */
  beginNested(type: number): number {
    return this.beginAttribute(type | nestedFlag);
  }

  /** Writes an attribute that holds what `write` writes. */
  nested(type: number, write: () => void): void {
    const start = this.beginNested(type);
    write();
    this.endAttribute(start);
  }

  /** Ends an attribute. Throws `InvariantError` when it is longer than a length field can say. */
  endAttribute(start: number): void {
    const length = this.#length - start;
    if (length > maxAttributeLength) throw new InvariantError(`a netlink attribute has ${length} bytes; split it`);
    this.#view.setUint16(start, length, isLittleEndian);
    this.pad();
  }

  attributeUint8(type: number, value: number): void {
    const start = this.beginAttribute(type);
    this.uint8(value);
    this.endAttribute(start);
  }

  attributeUint16be(type: number, value: number): void {
    const start = this.beginAttribute(type);
    this.uint16be(value);
    this.endAttribute(start);
  }

  attributeUint32(type: number, value: number): void {
    const start = this.beginAttribute(type);
    this.uint32(value);
    this.endAttribute(start);
  }

  attributeUint32be(type: number, value: number): void {
    const start = this.beginAttribute(type);
    this.uint32be(value);
    this.endAttribute(start);
  }

  attributeUint64be(type: number, value: bigint): void {
    const start = this.beginAttribute(type);
    this.uint64be(value);
    this.endAttribute(start);
  }

  /** ASCII text with the NUL that the kernel requires. */
  attributeText(type: number, text: string): void {
    const start = this.beginAttribute(type);
    for (let index = 0; index < text.length; index++) this.uint8(text.charCodeAt(index));
    this.uint8(0);
    this.endAttribute(start);
  }

  attributeBytes(type: number, bytes: Uint8Array): void {
    const start = this.beginAttribute(type);
    this.raw(bytes);
    this.endAttribute(start);
  }

  uint8(value: number): void {
    const at = this.#advance(1);
    this.#bytes[at] = value;
  }

  uint16(value: number): void {
    const at = this.#advance(2);
    this.#view.setUint16(at, value, isLittleEndian);
  }

  uint16be(value: number): void {
    const at = this.#advance(2);
    this.#view.setUint16(at, value);
  }

  uint32(value: number): void {
    const at = this.#advance(4);
    this.#view.setUint32(at, value, isLittleEndian);
  }

  uint32be(value: number): void {
    const at = this.#advance(4);
    this.#view.setUint32(at, value);
  }

  uint64be(value: bigint): void {
    const at = this.#advance(8);
    this.#view.setBigUint64(at, value);
  }

  raw(bytes: Uint8Array): void {
    const at = this.#advance(bytes.length);
    this.#bytes.set(bytes, at);
  }

  /** Zeros up to the next multiple of four. */
  pad(): void {
    while ((this.#length & 3) !== 0) this.uint8(0);
  }

  #advance(count: number): number {
    const at = this.#length;
    const end = at + count;
    if (end > this.#bytes.length) this.#resize(Math.max(end, this.#bytes.length * 2));
    this.#length = end;
    return at;
  }

  #resize(capacity: number): void {
    const old = this.#bytes.subarray(0, this.#length);
    this.#bytes = new Uint8Array(capacity);
    this.#bytes.set(old);
    this.#view = new DataView(this.#bytes.buffer);
  }
}
