import { InvariantError, type IpAddress, ipToBytes } from '@switchyard/core';
import { aligned, MessageWriter, nestedFlag, type NetlinkRequest, NLM_F } from '@switchyard/native';
import { BATCH, familyInet, NFT_MSG, NFTA, subsystem } from '@switchyard/netfilter';
import type { Change, ElementChange } from '../../render/elements.ts';
import { protocolNumbers } from '../../render/names.ts';
import { layouts, type ObjectLayout, type Part, type PartsLayout } from '../../render/schemas.ts';
import type { WriteRequest } from '../transport.ts';
import { writeClass } from './encode-class.ts';
import { writeIntervals } from './encode-intervals.ts';
import { maxListLength } from './write-objects.ts';

/** One message of a batch, for finding the change that an answer is about. */
export interface SentMessage {
  readonly sequence: number;
  readonly offset: number;
  readonly object: string | undefined;
  /** The change that its first element belongs to. */
  readonly firstChange: number;
  /** Whether each element is a change of its own; else all of the message belongs to the first. */
  readonly isPerElement: boolean;
}

/** A transaction ready to be sent. `bytes` is valid until the next one is encoded. */
export interface EncodedBatch {
  readonly bytes: Uint8Array;
  /** In order, without begin and end. The last one has NLM_F_ACK; its acknowledgement proves the commit. */
  readonly messages: readonly SentMessage[];
}

/** A batch under construction, for functions that write its messages. */
export interface BatchTarget {
  readonly writer: MessageWriter;
  readonly table: string;
  /** Begins a message of the batch; returns nothing to be kept. It is ended by `endMessage` of the writer. */
  begin(type: number, flags: number, object: string | undefined): void;
}

export function objectLayout(name: string): ObjectLayout {
  const layout = layouts.get(name);
  if (layout === undefined) throw new InvariantError(`no elements are written to an object ${JSON.stringify(name)}`);
  return layout;
}

/** Encodes transactions into one buffer that is used again and again. */
export class BatchEncoder {
  readonly #writer = new MessageWriter();
  readonly #parts = new PartWriter(this.#writer);
  #sequence = 0;
  #messages: SentMessage[] = [];
  #change = 0;
  #table = '';
  /** The open list of elements: its attribute, what it is of, and whether they are added. */
  #list = -1;
  #layout: ObjectLayout | undefined;
  #verb: ElementChange['kind'] = 'add';

  /** One transaction out of ordered changes. Neighbours of a kind share a message. */
  changes({ table, changes }: WriteRequest): EncodedBatch {
    this.#begin(table);
    for (this.#change = 0; this.#change < changes.length; this.#change++) {
      const change = changes[this.#change];
      if (change !== undefined) this.#encode(change);
    }
    this.#endList();
    return this.#end();
  }

  custom(table: string, write: (target: BatchTarget) => void): EncodedBatch {
    this.#begin(table);
    write(this.#target());
    return this.#end();
  }

  /** The same without an end: the kernel checks everything, answers, and takes all of it back. */
  trial(table: string, write: (target: BatchTarget) => void): EncodedBatch {
    this.#begin(table);
    write(this.#target());
    return this.#answered();
  }

  request(
    header: { readonly type: number; readonly flags: number },
    write: (writer: MessageWriter) => void,
  ): NetlinkRequest {
    const sequence = this.#nextSequence();
    this.#writer.clear();
    this.#writer.beginMessage({ ...header, sequence });
    this.#writer.netfilterHeader(familyInet, 0);
    write(this.#writer);
    this.#writer.endMessage();
    return { bytes: this.#writer.bytes(), sequence };
  }

  #encode(change: Change): void {
    switch (change.kind) {
      case 'add':
      case 'delete':
        return this.#element(change);
      case 'replace':
        this.#endList();
        return writeIntervals(this.#target(), change);
      case 'class':
        this.#endList();
        return writeClass(this.#target(), change);
    }
  }

  #element(change: ElementChange): void {
    const layout = this.#openList(change);
    const { key, data, isInterval } = layout;
    const keySize = 4 + aligned(key.length);
    const isWithData = data.length > 0 && change.kind === 'add';
    const dataSize = isWithData ? 8 + aligned(data.length) : 0;
    const writer = this.#writer;
    const from = layout.name.length + 1;
    writer.attributeHeader(NFTA.LIST.ELEM | nestedFlag, (4 + keySize) * (isInterval ? 2 : 1) + dataSize);
    writer.attributeHeader(NFTA.ELEM.KEY | nestedFlag, keySize);
    writer.attributeHeader(NFTA.DATA.VALUE, key.length);
    this.#parts.write(change.id, from, key);
    writer.pad();
    if (isWithData) {
      writer.attributeHeader(NFTA.ELEM.DATA | nestedFlag, 4 + aligned(data.length));
      writer.attributeHeader(NFTA.DATA.VALUE, data.length);
      this.#parts.write(change.data, 0, data);
      writer.pad();
    }
    if (!isInterval) return;
    writer.attributeHeader(NFTA.ELEM.KEY_END | nestedFlag, keySize);
    writer.attributeHeader(NFTA.DATA.VALUE, key.length);
    this.#parts.write(change.id, from, key, 'last');
    writer.pad();
  }

  /** Makes sure that the open list is the one this change belongs to. */
  #openList({ kind, id }: ElementChange): ObjectLayout {
    const open = this.#layout;
    const isSame =
      this.#list >= 0 &&
      open !== undefined &&
      this.#verb === kind &&
      id.charCodeAt(open.name.length) === 0x20 &&
      id.startsWith(open.name) &&
      this.#writer.length - this.#list < maxListLength;
    if (isSame) return open;
    this.#endList();
    const layout = objectLayout(id.slice(0, id.indexOf(' ')));
    const isAdd = kind === 'add';
    // Without NLM_F_EXCL: an existing element is no error, unless it has other data.
    const [type, flags] = isAdd ? [NFT_MSG.NEWSETELEM, NLM_F.CREATE] : [NFT_MSG.DELSETELEM, 0];
    this.#beginMessage(type, flags, { object: layout.name, isPerElement: true });
    this.#writer.attributeText(NFTA.ELEM_LIST.TABLE, this.#table);
    this.#writer.attributeText(NFTA.ELEM_LIST.SET, layout.name);
    this.#list = this.#writer.beginNested(NFTA.ELEM_LIST.ELEMENTS);
    this.#layout = layout;
    this.#verb = kind;
    return layout;
  }

  #endList(): void {
    if (this.#list < 0) return;
    this.#writer.endAttribute(this.#list);
    this.#writer.endMessage();
    this.#list = -1;
  }

  #target(): BatchTarget {
    return {
      writer: this.#writer,
      table: this.#table,
      begin: (type, flags, object) => this.#beginMessage(type, flags, { object, isPerElement: false }),
    };
  }

  #begin(table: string): void {
    this.#table = table;
    this.#messages = [];
    this.#list = -1;
    this.#writer.clear();
    this.#envelope(BATCH.BEGIN);
  }

  #end(): EncodedBatch {
    this.#answered();
    this.#envelope(BATCH.END);
    return { bytes: this.#writer.bytes(), messages: this.#messages };
  }

  #answered(): EncodedBatch {
    const last = this.#messages.at(-1);
    // The batch's own end is acknowledged by recent kernels only; its last message by all.
    if (last !== undefined) this.#writer.addFlags(last.offset, NLM_F.ACK);
    return { bytes: this.#writer.bytes(), messages: this.#messages };
  }

  #envelope(type: number): void {
    this.#writer.beginMessage({ type, flags: NLM_F.REQUEST, sequence: this.#nextSequence() });
    this.#writer.netfilterHeader(0, subsystem);
    this.#writer.endMessage();
  }

  #beginMessage(type: number, flags: number, what: Pick<SentMessage, 'object' | 'isPerElement'>): void {
    const sequence = this.#nextSequence();
    this.#messages.push({ sequence, offset: this.#writer.length, firstChange: this.#change, ...what });
    this.#writer.beginMessage({ type, flags: NLM_F.REQUEST | flags, sequence });
    this.#writer.netfilterHeader(familyInet, 0);
  }

  /** 0 is left out: it is what notifications carry. */
  #nextSequence(): number {
    this.#sequence = this.#sequence >= 0xffffffff ? 1 : this.#sequence + 1;
    return this.#sequence;
  }
}

const zero = 0x30;
const colon = 0x3a;
const dash = 0x2d;
const dot = 0x2e;
const space = 0x20;
const slash = 0x2f;

/** Which end of an interval is written; without interval parts both are the same. */
type Edge = 'first' | 'last';

/** Turns canonical text into the kernel's bytes without making objects: most of the time of a large load. */
class PartWriter {
  readonly #writer: MessageWriter;
  readonly #groups = new Uint16Array(8);
  #text = '';
  #at = 0;

  constructor(writer: MessageWriter) {
    this.#writer = writer;
  }

  /** Writes the parts that stand in `text` from `from` to its end. */
  write(text: string, from: number, { parts, isIpv6 }: PartsLayout, edge: Edge = 'first'): void {
    this.#text = text;
    this.#at = from;
    for (let index = 0; index < parts.length; index++) {
      if (index > 0) this.#separator();
      this.#part(parts[index], isIpv6, edge);
      if (parts.length > 1) this.#writer.pad();
    }
    if (this.#at !== text.length) throw this.#unreadable();
  }

  #part(part: Part | undefined, isIpv6: boolean, edge: Edge): void {
    switch (part) {
      case 'address':
        return isIpv6 ? this.#ipv6() : this.#ipv4();
      case 'cidr':
        return this.#cidr(edge);
      case 'protocol':
        return this.#protocol();
      case 'port':
        return this.#writer.uint16be(this.#decimal(0xffff));
      case 'number':
        return this.#writer.uint32(this.#decimal(0xffffffff));
      case 'handle':
        return this.#writer.uint32(this.#hexadecimal());
      default:
        throw this.#unreadable();
    }
  }

  #separator(): void {
    const { length } = ' . ';
    if (this.#code(0) !== space || this.#code(1) !== dot || this.#code(2) !== space) throw this.#unreadable();
    this.#at += length;
  }

  #ipv4(): void {
    let bits = 0;
    for (let octet = 0; octet < 4; octet++) {
      if (octet > 0) {
        if (this.#code(0) !== dot) throw this.#unreadable();
        this.#at++;
      }
      bits = bits * 256 + this.#decimal(255);
    }
    this.#writer.uint32be(bits);
  }

  #ipv6(): void {
    const groups = this.#groups;
    let count = 0;
    let gap = -1;
    while (count <= 8) {
      if (this.#code(0) === colon) {
        this.#at++;
        if (this.#code(0) === colon) {
          if (gap >= 0) throw this.#unreadable();
          gap = count;
          this.#at++;
        }
      }
      if (digitOf(this.#code(0)) < 0) break;
      groups[count++] = this.#hexDigits(0xffff);
      if (this.#code(0) !== colon) break;
    }
    if (count > 8 || (gap < 0 ? count !== 8 : count === 8)) throw this.#unreadable();
    const zeros = 8 - count;
    for (let index = 0; index < count; index++) {
      if (index === gap) this.#zeros(zeros);
      this.#writer.uint16be(groups[index] ?? 0);
    }
    if (gap === count) this.#zeros(zeros);
  }

  #zeros(count: number): void {
    for (let index = 0; index < count; index++) this.#writer.uint16be(0);
  }

  /** The last part. Rare, so it may make objects. */
  #cidr(edge: Edge): void {
    const start = this.#at;
    while (this.#at < this.#text.length && this.#code(0) !== slash && this.#code(0) !== dash) this.#at++;
    const isRange = this.#code(0) === dash;
    const bytes = ipToBytes(this.#text.slice(start, this.#at++) as IpAddress); // canonical, as the whole text
    if (isRange) {
      const last = ipToBytes(this.#text.slice(this.#at) as IpAddress);
      this.#at = this.#text.length;
      this.#writer.raw(edge === 'first' ? bytes : last);
      return;
    }
    const length = this.#decimal(bytes.length * 8);
    this.#writer.raw(edge === 'first' ? bytes : lastOf(bytes, length));
  }

  #protocol(): void {
    const end = this.#text.indexOf(' ', this.#at);
    const name = this.#text.slice(this.#at, end < 0 ? undefined : end);
    const number = protocolNumbers[name];
    if (number === undefined) throw this.#unreadable();
    this.#at += name.length;
    this.#writer.uint8(number);
  }

  #decimal(max: number): number {
    const start = this.#at;
    let value = 0;
    for (let digit = this.#code(0) - zero; digit >= 0 && digit <= 9; digit = this.#code(0) - zero) {
      value = value * 10 + digit;
      this.#at++;
    }
    if (this.#at === start || value > max) throw this.#unreadable();
    return value;
  }

  #hexadecimal(): number {
    if (this.#code(0) !== zero || this.#code(1) !== 0x78) throw this.#unreadable();
    this.#at += 2;
    return this.#hexDigits(0xffffffff);
  }

  #hexDigits(max: number): number {
    const start = this.#at;
    let value = 0;
    for (let digit = digitOf(this.#code(0)); digit >= 0; digit = digitOf(this.#code(0))) {
      value = value * 16 + digit;
      this.#at++;
    }
    if (this.#at === start || value > max) throw this.#unreadable();
    return value;
  }

  /** NaN behind the end: equal to nothing, smaller than nothing. */
  #code(ahead: number): number {
    return this.#text.charCodeAt(this.#at + ahead);
  }

  #unreadable(): InvariantError {
    return new InvariantError(`cannot write ${JSON.stringify(this.#text)} as an element: wrong at ${this.#at}`);
  }
}

/** The value of a hexadecimal digit in lower case; -1 for anything else. */
function digitOf(code: number): number {
  if (code >= zero && code <= 0x39) return code - zero;
  return code >= 0x61 && code <= 0x66 ? code - 0x61 + 10 : -1;
}

function lastOf(bytes: Uint8Array, length: number): Uint8Array {
  return bytes.map((byte, index) => byte | (0xff >> Math.min(8, Math.max(0, length - index * 8))));
}
