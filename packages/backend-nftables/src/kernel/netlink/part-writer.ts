import { InvariantError, type IpAddress, ipToBytes } from '@switchyard/core';
import type { MessageWriter } from '@switchyard/native';
import { type FamilySuffix, dropSets, protocolNumbers } from '../../render/names.ts';
import { type Part, type Schema, dropSetSchema, schemas } from '../../render/schemas.ts';

const zero = 0x30;
const colon = 0x3a;
const dash = 0x2d;
const dot = 0x2e;
const space = 0x20;
const slash = 0x2f;

/** Which end of an interval is written; without interval parts both are the same. */
export type Edge = 'first' | 'last';

/**
 * Turns the canonical text of keys and values into the kernel's bytes. It reads character by character and makes
 * no object: this is most of the time that a large load takes. Text of another shape is our own mistake.
 */
export class PartWriter {
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

/** The last address of a CIDR. */
function lastOf(bytes: Uint8Array, length: number): Uint8Array {
  return bytes.map((byte, index) => byte | (0xff >> Math.min(8, Math.max(0, length - index * 8))));
}

/** The parts of a key or of data. */
export interface PartsLayout {
  /** None: there is no such thing, as the data of a set. */
  readonly parts: readonly Part[];
  /** Bytes. */
  readonly length: number;
  /** Whether addresses in it have 16 bytes. */
  readonly isIpv6: boolean;
}

/** How the elements of one map or set lie in a message. */
export interface ObjectLayout {
  /** With its suffix: the name in the kernel. */
  readonly name: string;
  readonly key: PartsLayout;
  readonly data: PartsLayout;
  /** The key is an interval: first and last of it are written. */
  readonly isInterval: boolean;
}

const layouts: ReadonlyMap<string, ObjectLayout> = new Map(
  [...Object.entries(schemas), ...dropSets.map((set) => [set, dropSetSchema] as const)].flatMap(([object, schema]) =>
    (['4', '6'] as const).map((suffix) => [`${object}${suffix}`, layoutOf(object, schema, suffix)] as const),
  ),
);

/** The layout of an object by its name with suffix. */
export function objectLayout(name: string): ObjectLayout {
  const layout = layouts.get(name);
  if (layout === undefined) throw new InvariantError(`no elements are written to an object ${JSON.stringify(name)}`);
  return layout;
}

function layoutOf(object: string, { key, data }: Schema, suffix: FamilySuffix): ObjectLayout {
  return {
    name: `${object}${suffix}`,
    key: partsLayout(key, suffix),
    data: partsLayout(data, suffix),
    isInterval: key.includes('cidr'),
  };
}

function partsLayout(parts: readonly Part[], suffix: FamilySuffix): PartsLayout {
  return { parts, length: lengthOf(parts, suffix), isIpv6: suffix === '6' };
}

function lengthOf(parts: readonly Part[], suffix: FamilySuffix): number {
  const [only] = parts;
  // A value of one part is as long as its type; in a concatenation each part is padded to four bytes.
  if (parts.length === 1 && (only === 'protocol' || only === 'port')) return only === 'port' ? 2 : 1;
  return parts.reduce((sum, part) => sum + (isAddress(part) && suffix === '6' ? 16 : 4), 0);
}

function isAddress(part: Part): boolean {
  return part === 'address' || part === 'cidr';
}
