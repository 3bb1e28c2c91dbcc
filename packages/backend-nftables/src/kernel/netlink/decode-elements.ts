import { HostError, ipv4Text, ipv6Text } from '@switchyard/core';
import { AttributeCursor, readAttributes, readText, readUint16be, readUint32, readUint64be } from '@switchyard/native';
import { NFTA } from '@switchyard/netfilter';
import { type Element, hex } from '../../render/elements.ts';
import { nftProtocols, protocolNumbers } from '../../render/names.ts';
import type { ObjectLayout, Part, PartsLayout } from '../../render/schemas.ts';

/** Where the values of one element lie in a datagram; 0 for what it does not have. */
export interface RawElement {
  key: number;
  keyLength: number;
  keyEnd: number;
  data: number;
  dataLength: number;
  /** `NFT_SET_ELEM_...` */
  flags: number;
  /** Where its expression lies, such as a counter. */
  expression: number;
  expressionEnd: number;
  /** Of its verdict, if the data is one. */
  chain: string;
}

/** Parses dumps. All elements share one object, which is refilled for each and valid inside `visit` only. */
export class ElementReader {
  readonly #outer = new AttributeCursor();
  readonly #list = new AttributeCursor();
  readonly #element = new AttributeCursor();
  readonly #value = new AttributeCursor();
  readonly #raw: RawElement = {
    key: 0,
    keyLength: 0,
    keyEnd: 0,
    data: 0,
    dataLength: 0,
    flags: 0,
    expression: 0,
    expressionEnd: 0,
    chain: '',
  };

  /** Visits each element of a message; `start` is behind its netfilter header. */
  read(bytes: Uint8Array, start: number, end: number, visit: (raw: Readonly<RawElement>) => void): void {
    const [outer, list] = [this.#outer, this.#list];
    outer.enter(bytes, start, end);
    while (outer.next()) {
      if (outer.type !== NFTA.ELEM_LIST.ELEMENTS) continue;
      list.enter(bytes, outer.start, outer.end);
      while (list.next()) {
        this.#fill(bytes, list.start, list.end);
        visit(this.#raw);
      }
    }
  }

  #fill(bytes: Uint8Array, start: number, end: number): void {
    const raw = this.#raw;
    raw.key =
      raw.keyLength =
      raw.keyEnd =
      raw.data =
      raw.dataLength =
      raw.flags =
      raw.expression =
      raw.expressionEnd =
        0;
    raw.chain = '';
    const element = this.#element;
    element.enter(bytes, start, end);
    while (element.next()) {
      if (element.type === NFTA.ELEM.KEY) {
        if (!this.#enterValue(bytes, NFTA.DATA.VALUE)) continue;
        raw.key = this.#value.start;
        raw.keyLength = this.#value.end - this.#value.start;
      } else if (element.type === NFTA.ELEM.KEY_END) {
        if (this.#enterValue(bytes, NFTA.DATA.VALUE)) raw.keyEnd = this.#value.start;
      } else if (element.type === NFTA.ELEM.DATA) this.#fillData(bytes);
      else if (element.type === NFTA.ELEM.FLAGS) raw.flags = bytes[element.end - 1] ?? 0;
      else if (element.type === NFTA.ELEM.EXPR) {
        raw.expression = element.start;
        raw.expressionEnd = element.end;
      }
    }
  }

  #fillData(bytes: Uint8Array): void {
    const [raw, value] = [this.#raw, this.#value];
    if (this.#enterValue(bytes, NFTA.DATA.VALUE)) {
      raw.data = value.start;
      raw.dataLength = value.end - value.start;
    } else if (this.#enterValue(bytes, NFTA.DATA.VERDICT)) {
      value.enter(bytes, value.start, value.end);
      while (value.next()) if (value.type === NFTA.VERDICT.CHAIN) raw.chain = readText(bytes, value.start, value.end);
    }
  }

  #enterValue(bytes: Uint8Array, type: number): boolean {
    this.#value.enter(bytes, this.#element.start, this.#element.end);
    while (this.#value.next()) if (this.#value.type === type) return true;
    return false;
  }
}

/** Packets that an element counted; undefined when it does not count. Our maps and sets have one expression at most. */
export function packetsOf(bytes: Uint8Array, { expression, expressionEnd }: Readonly<RawElement>): number | undefined {
  let isCounter = false;
  for (const { type, start, end } of readAttributes(bytes, expression, expressionEnd)) {
    if (type === NFTA.EXPR.NAME) isCounter = readText(bytes, start, end) === 'counter';
    if (type !== NFTA.EXPR.DATA || !isCounter) continue;
    for (const value of readAttributes(bytes, start, end)) {
      if (value.type === NFTA.COUNTER.PACKETS) return Number(readUint64be(bytes, value.start));
    }
  }
  return undefined;
}

/** The key of an element in canonical text. Throws `HostError` for one of another shape. */
export function keyOf(bytes: Uint8Array, raw: Readonly<RawElement>, layout: ObjectLayout): string {
  const isRight = raw.keyLength === layout.key.length;
  const key = isRight ? partsText(bytes, layout.key, { at: raw.key, end: raw.keyEnd }) : undefined;
  if (key === undefined) throw notOurs(bytes, raw, layout);
  return key;
}

/** An element in the canonical text of `elements.ts`. Throws `HostError` for one of another shape. */
export function elementOf(bytes: Uint8Array, raw: Readonly<RawElement>, layout: ObjectLayout): Element {
  if (raw.keyLength !== layout.key.length || raw.dataLength !== layout.data.length) throw notOurs(bytes, raw, layout);
  const key = partsText(bytes, layout.key, { at: raw.key, end: raw.keyEnd });
  const data = raw.dataLength === 0 ? '' : partsText(bytes, layout.data, { at: raw.data, end: 0 });
  if (key === undefined || data === undefined) throw notOurs(bytes, raw, layout);
  return { id: `${layout.name} ${key}`, data };
}

/** Where a value begins, and where the end of its interval does, if it has one. */
interface Place {
  readonly at: number;
  readonly end: number;
}

function partsText(bytes: Uint8Array, { parts, isIpv6 }: PartsLayout, { at, end }: Place): string | undefined {
  let text = '';
  let offset = 0;
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index] ?? 'number';
    const one = partText(bytes, part, isIpv6, { at: at + offset, end: end === 0 ? at + offset : end + offset });
    if (one === undefined) return undefined;
    text += index === 0 ? one : ` . ${one}`;
    offset += isIpv6 && (part === 'address' || part === 'cidr') ? 16 : 4;
  }
  return text;
}

const protocolTexts: ReadonlyMap<number | undefined, string> = new Map(
  Object.values(nftProtocols).map((name) => [protocolNumbers[name], name]),
);

function partText(bytes: Uint8Array, part: Part, isIpv6: boolean, { at, end }: Place): string | undefined {
  switch (part) {
    case 'address':
      return isIpv6 ? ipv6Text(bytes, at) : ipv4Text(bytes, at);
    case 'cidr':
      return cidrText(bytes, { at, end }, isIpv6);
    case 'protocol':
      return protocolTexts.get(bytes[at]);
    case 'port':
      return String(readUint16be(bytes, at));
    case 'number':
      return String(readUint32(bytes, at));
    case 'handle':
      return hex(readUint32(bytes, at));
    default:
      return undefined;
  }
}

/** The CIDR from its first to its last address; `first-last` for a range of another process that is no CIDR. */
function cidrText(bytes: Uint8Array, { at, end }: Place, isIpv6: boolean): string {
  const textOf = isIpv6 ? ipv6Text : ipv4Text;
  const size = isIpv6 ? 16 : 4;
  let length = 0;
  while (length < size * 8 && bitOf(bytes, at, length) === bitOf(bytes, end, length)) length++;
  for (let bit = length; bit < size * 8; bit++) {
    if (bitOf(bytes, at, bit) !== 0 || bitOf(bytes, end, bit) !== 1)
      return `${textOf(bytes, at)}-${textOf(bytes, end)}`;
  }
  return `${textOf(bytes, at)}/${length}`;
}

function bitOf(bytes: Uint8Array, at: number, bit: number): number {
  return ((bytes[at + (bit >> 3)] ?? 0) >> (7 - (bit & 7))) & 1;
}

function notOurs(
  bytes: Uint8Array,
  { key, keyLength, data, dataLength }: RawElement,
  { name }: ObjectLayout,
): HostError {
  const hexOf = (at: number, length: number): string => Buffer.from(bytes.subarray(at, at + length)).toString('hex');
  return new HostError(
    'nftables.element',
    `cannot read an element of our own nft table: ${name} holds ${hexOf(key, keyLength) || 'an element without a key'}` +
      `${dataLength === 0 ? '' : ` : ${hexOf(data, dataLength)}`}; run the agent with --cleanup once, then again`,
  );
}
