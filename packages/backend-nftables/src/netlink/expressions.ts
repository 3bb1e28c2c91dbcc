import type { MessageWriter } from '@switchyard/native';
import { NFT_GOTO, NFTA } from './constants.ts';

/** Registers by number: 1 to 4 have 16 bytes each; 8 to 23 are the same space in pieces of four. */
export type Register = number;

/** NFT_META_PRIORITY. */
const metaPriority = 2;
/** NFT_META_NFPROTO. */
const metaFamily = 15;
/** NFPROTO_IPV4 and NFPROTO_IPV6. */
const familyNumber = (isIpv6: boolean): number => (isIpv6 ? 10 : 2);

/** `meta priority` into a register. */
export function loadPriority(writer: MessageWriter, to: Register): void {
  expression(writer, 'meta', () => {
    writer.attributeUint32be(2, metaPriority);
    writer.attributeUint32be(1, to);
  });
}

/** A register into `meta priority`. */
export function setPriority(writer: MessageWriter, from: Register): void {
  expression(writer, 'meta', () => {
    writer.attributeUint32be(2, metaPriority);
    writer.attributeUint32be(3, from);
  });
}

/** Ends the rule for packets of the other IP family; `scratch` is overwritten. */
export function requireFamily(writer: MessageWriter, scratch: Register, isIpv6: boolean): void {
  expression(writer, 'meta', () => {
    writer.attributeUint32be(2, metaFamily);
    writer.attributeUint32be(1, scratch);
  });
  expression(writer, 'cmp', () => {
    writer.attributeUint32be(1, scratch);
    writer.attributeUint32be(2, 0); // NFT_CMP_EQ
    const data = writer.beginNested(3);
    writer.attributeBytes(NFTA.DATA.VALUE, Uint8Array.of(familyNumber(isIpv6)));
    writer.endAttribute(data);
  });
}

/** The packet's source address into registers. */
export function loadSource(writer: MessageWriter, to: Register, isIpv6: boolean): void {
  expression(writer, 'payload', () => {
    writer.attributeUint32be(1, to);
    writer.attributeUint32be(2, 1); // NFT_PAYLOAD_NETWORK_HEADER
    writer.attributeUint32be(3, isIpv6 ? 8 : 12); // from byte
    writer.attributeUint32be(4, isIpv6 ? 16 : 4); // bytes
  });
}

/** Keeps the bits of `mask` in a register of four bytes. */
export function keepBits(writer: MessageWriter, register: Register, mask: number): void {
  expression(writer, 'bitwise', () => {
    writer.attributeUint32be(1, register); // from
    writer.attributeUint32be(2, register); // to
    writer.attributeUint32be(3, 4); // bytes
    hostNumber(writer, 4, mask); // and
    hostNumber(writer, 5, 0); // xor
  });
}

/** A random number below `modulus` into a register of four bytes. */
export function random(writer: MessageWriter, to: Register, modulus: number): void {
  expression(writer, 'numgen', () => {
    writer.attributeUint32be(1, to);
    writer.attributeUint32be(2, modulus);
    writer.attributeUint32be(3, 1); // NFT_NG_RANDOM
    writer.attributeUint32be(4, 0); // offset
  });
}

/** Looks the key at `from` up in a map; what it leads to goes to `to`. The rule ends where there is no such key. */
export function lookUp(writer: MessageWriter, map: string, from: Register, to: Register): void {
  expression(writer, 'lookup', () => {
    writer.attributeText(1, map);
    writer.attributeUint32be(2, from);
    writer.attributeUint32be(3, to);
  });
}

/** An element that a rule writes. */
export interface RuleElement {
  readonly map: string;
  readonly key: Register;
  readonly data: Register;
}

/**
 * Adds an element, or gives the one that is there its time again: its data stays. The rule ends where the map is full.
 * `timeout` is in milliseconds.
 */
export function updateElement(writer: MessageWriter, element: RuleElement & { readonly timeout: number }): void {
  writeElement(writer, { ...element, operation: 1 });
}

/** Deletes an element; the rule ends where there is none. */
export function deleteElement(writer: MessageWriter, element: RuleElement): void {
  writeElement(writer, { ...element, operation: 2 });
}

interface ElementWrite extends RuleElement {
  /** `NFT_DYNSET_OP_...` */
  readonly operation: number;
  readonly timeout?: number;
}

function writeElement(writer: MessageWriter, { map, key, data, operation, timeout }: ElementWrite): void {
  expression(writer, 'dynset', () => {
    writer.attributeText(1, map);
    writer.attributeUint32be(3, operation);
    writer.attributeUint32be(4, key);
    writer.attributeUint32be(5, data);
    if (timeout !== undefined) writer.attributeUint64be(6, BigInt(timeout));
  });
}

/** Where a destination lies. */
export interface Destination {
  readonly address: Register;
  readonly port: Register;
  readonly isIpv6: boolean;
}

/** `dnat`. */
export function destinationNat(writer: MessageWriter, { address, port, isIpv6 }: Destination): void {
  expression(writer, 'nat', () => {
    writer.attributeUint32be(1, 1); // NFT_NAT_DNAT
    writer.attributeUint32be(2, familyNumber(isIpv6));
    writer.attributeUint32be(3, address);
    writer.attributeUint32be(5, port);
  });
}

/** `goto`. */
export function goTo(writer: MessageWriter, chain: string): void {
  expression(writer, 'immediate', () => {
    writer.attributeUint32be(1, 0); // NFT_REG_VERDICT
    const data = writer.beginNested(2);
    gotoVerdict(writer, chain);
    writer.endAttribute(data);
  });
}

/** `drop`. */
export function drop(writer: MessageWriter): void {
  expression(writer, 'immediate', () => {
    writer.attributeUint32be(1, 0); // NFT_REG_VERDICT
    const data = writer.beginNested(2);
    const verdict = writer.beginNested(NFTA.DATA.VERDICT);
    writer.attributeUint32be(NFTA.VERDICT.CODE, 0); // NF_DROP
    writer.endAttribute(verdict);
    writer.endAttribute(data);
  });
}

/** The verdict `goto` as the content of data. */
export function gotoVerdict(writer: MessageWriter, chain: string): void {
  const verdict = writer.beginNested(NFTA.DATA.VERDICT);
  writer.attributeUint32be(NFTA.VERDICT.CODE, NFT_GOTO);
  writer.attributeText(NFTA.VERDICT.CHAIN, chain);
  writer.endAttribute(verdict);
}

/** A value in the machine's order, as the metadata of packets are. */
export function hostNumber(writer: MessageWriter, type: number, value: number): void {
  const nested = writer.beginNested(type);
  writer.attributeUint32(NFTA.DATA.VALUE, value);
  writer.endAttribute(nested);
}

/** One expression of a rule; `write` writes its attributes. */
export function expression(writer: MessageWriter, name: string, write: () => void): void {
  const element = writer.beginNested(NFTA.LIST.ELEM);
  writer.attributeText(NFTA.EXPR.NAME, name);
  const data = writer.beginNested(NFTA.EXPR.DATA);
  write();
  writer.endAttribute(data);
  writer.endAttribute(element);
}
