import type { MessageWriter } from '@switchyard/native';
import { NFT_GOTO, NFTA } from './constants.ts';

/** Registers by number: 1 to 4 have 16 bytes each; 8 to 23 are the same space in pieces of four. */
export type Register = number;

/** NFT_META_PRIORITY. */
const metaPriority = 2;

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
    writer.attributeUint32be(2, isIpv6 ? 10 : 2); // NFPROTO_...
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
