import type { MessageWriter } from '@switchyard/native';
import { NFT_GOTO, NFTA } from './constants.ts';

/** Keys of `meta`: `NFT_META_...`. */
export const metaKey = { priority: 2, mark: 3, iifname: 6, nftrace: 12, nfproto: 15, l4proto: 16, time: 30 } as const;

/** Where a header field lies, for the expression `payload`. */
export interface HeaderField {
  /** `NFT_PAYLOAD_...`: 1 is the network header, 2 the transport header. */
  readonly base: 1 | 2;
  readonly offset: number;
  readonly length: number;
}

/** Registers by number: 1 to 4 have 16 bytes each; 8 to 23 are the same space in pieces of four. */
export type Register = number;

/** NFPROTO_IPV4 and NFPROTO_IPV6. */
const familyNumber = (isIpv6: boolean): number => (isIpv6 ? 10 : 2);

/** The register that begins `words` words of four bytes behind the first; 16 bytes of it are free where that is a multiple of four. */
export function registerAt(words: number): Register {
  return words % 4 === 0 ? 1 + words / 4 : 8 + words;
}

export function loadMeta(writer: MessageWriter, key: number, to: Register): void {
  numbers(writer, 'meta', [2, key], [1, to]);
}

export function setMeta(writer: MessageWriter, key: number, from: Register): void {
  numbers(writer, 'meta', [2, key], [3, from]);
}

export function loadPriority(writer: MessageWriter, to: Register): void {
  loadMeta(writer, metaKey.priority, to);
}

export function setPriority(writer: MessageWriter, from: Register): void {
  setMeta(writer, metaKey.priority, from);
}

/** Ends the rule unless the register equals `value`, or where it does. */
export function compare(writer: MessageWriter, from: Register, value: Uint8Array, isNegated = false): void {
  expression(writer, 'cmp', () => {
    writer.attributeUint32be(1, from);
    writer.attributeUint32be(2, isNegated ? 1 : 0); // NFT_CMP_NEQ, NFT_CMP_EQ
    writer.nested(3, () => writer.attributeBytes(NFTA.DATA.VALUE, value));
  });
}

/** Ends the rule for packets of the other IP family, or of this one; `scratch` is overwritten. */
export function requireFamily(writer: MessageWriter, scratch: Register, isIpv6: boolean, isNegated = false): void {
  loadMeta(writer, metaKey.nfproto, scratch);
  compare(writer, scratch, Uint8Array.of(familyNumber(isIpv6)), isNegated);
}

export function loadPayload(writer: MessageWriter, { base, offset, length }: HeaderField, to: Register): void {
  numbers(writer, 'payload', [1, to], [2, base], [3, offset], [4, length]);
}

export function loadSource(writer: MessageWriter, to: Register, isIpv6: boolean): void {
  loadPayload(writer, isIpv6 ? { base: 1, offset: 8, length: 16 } : { base: 1, offset: 12, length: 4 }, to);
}

/** Keeps the bits of `mask` in a register of four bytes, and inverts those of `flip`. */
export function keepBits(writer: MessageWriter, register: Register, mask: number, flip = 0): void {
  expression(writer, 'bitwise', () => {
    writer.attributeUint32be(1, register); // from
    writer.attributeUint32be(2, register); // to
    writer.attributeUint32be(3, 4); // bytes
    hostNumber(writer, 4, mask >>> 0); // and
    hostNumber(writer, 5, flip >>> 0); // xor
  });
}

/** One byte of a register into the network's order. It changes nothing; nft writes it for keys with ranges. */
export function toNetworkOrder(writer: MessageWriter, register: Register, length: number): void {
  const operation = 1; // NFT_BYTEORDER_HTON
  const bytesPerNumber = 2;
  numbers(writer, 'byteorder', [1, register], [2, register], [3, operation], [4, length], [5, bytesPerNumber]);
}

export function loadConntrack(writer: MessageWriter, key: number, to: Register): void {
  numbers(writer, 'ct', [2, key], [1, to]);
}

/** The type of an address of the packet into a register, such as local: `RTN_...`. */
export function loadAddressType(writer: MessageWriter, address: 'saddr' | 'daddr', to: Register): void {
  const flag = address === 'saddr' ? 1 : 2; // NFTA_FIB_F_SADDR, NFTA_FIB_F_DADDR
  const result = 3; // NFT_FIB_RESULT_ADDRTYPE
  numbers(writer, 'fib', [3, flag], [2, result], [1, to]);
}

/** Ends the rule after `count` packets; one more passes in each hour. */
export function limitPackets(writer: MessageWriter, count: number): void {
  expression(writer, 'limit', () => {
    writer.attributeUint64be(1, 1n);
    writer.attributeUint64be(2, 3600n); // seconds
    writer.attributeUint32be(3, count);
    writer.attributeUint32be(4, 0); // NFT_LIMIT_PKTS
  });
}

export function loadNumber(writer: MessageWriter, value: number, to: Register): void {
  expression(writer, 'immediate', () => {
    writer.attributeUint32be(1, to);
    hostNumber(writer, 2, value);
  });
}

export function random(writer: MessageWriter, to: Register, modulus: number): void {
  const [kind, offset] = [1, 0]; // NFT_NG_RANDOM
  numbers(writer, 'numgen', [1, to], [2, modulus], [3, kind], [4, offset]);
}

/** Looks the key at `from` up in a map; what it leads to goes to `to`. The rule ends where there is no such key. */
export function lookUp(writer: MessageWriter, map: SetName, from: Register, to: Register): void {
  expression(writer, 'lookup', () => {
    writeSetName(writer, map);
    writer.attributeUint32be(2, from);
    writer.attributeUint32be(3, to);
  });
}

/** Ends the rule unless the key at `from` is in a set, or where it is. */
export function isInSet(writer: MessageWriter, set: SetName, from: Register, isNegated = false): void {
  expression(writer, 'lookup', () => {
    writeSetName(writer, set);
    writer.attributeUint32be(2, from);
    if (isNegated) writer.attributeUint32be(5, 1); // NFT_LOOKUP_F_INV
  });
}

/** A set: by its name, or one without a name of this transaction by its number. */
export type SetName = string | { readonly name: string; readonly id: number };

function writeSetName(writer: MessageWriter, set: SetName): void {
  writer.attributeText(1, typeof set === 'string' ? set : set.name);
  if (typeof set !== 'string') writer.attributeUint32be(4, set.id);
}

export interface RuleElement {
  /** Adds an element, or renews one, whose data stays; or deletes it. The rule ends where the set is full, or there is none. */
  readonly operation: keyof typeof dynset;
  readonly set: string;
  readonly key: Register;
  /** Undefined for an element of a set. */
  readonly data?: Register;
  /** Milliseconds. */
  readonly timeout?: number;
}

/** `NFT_DYNSET_OP_...` */
const dynset = { update: 1, delete: 2 } as const;

export function changeElement(writer: MessageWriter, { operation, set, key, data, timeout }: RuleElement): void {
  expression(writer, 'dynset', () => {
    writer.attributeText(1, set);
    writer.attributeUint32be(3, dynset[operation]);
    writer.attributeUint32be(4, key);
    if (data !== undefined) writer.attributeUint32be(5, data);
    if (timeout !== undefined) writer.attributeUint64be(6, BigInt(timeout));
  });
}

export interface Destination {
  readonly address: Register;
  readonly port: Register;
  readonly isIpv6: boolean;
}

/** NFT_NAT_DNAT. */
const dnat = 1;

export function destinationNat(writer: MessageWriter, { address, port, isIpv6 }: Destination): void {
  numbers(writer, 'nat', [1, dnat], [2, familyNumber(isIpv6)], [3, address], [5, port]);
}

export function goTo(writer: MessageWriter, chain: string): void {
  verdict(writer, () => gotoVerdict(writer, chain));
}

export function drop(writer: MessageWriter): void {
  verdict(writer, () => writeVerdict(writer, 0)); // NF_DROP
}

export function accept(writer: MessageWriter): void {
  verdict(writer, () => writeVerdict(writer, 1)); // NF_ACCEPT
}

function verdict(writer: MessageWriter, write: () => void): void {
  expression(writer, 'immediate', () => {
    writer.attributeUint32be(1, 0); // NFT_REG_VERDICT
    writer.nested(2, write);
  });
}

/** `reject`: a type of `NFT_REJECT_...`, and its code. */
export function reject(writer: MessageWriter, type: number, code: number): void {
  expression(writer, 'reject', () => {
    writer.attributeUint32be(1, type);
    writer.attributeUint8(2, code);
  });
}

export function masquerade(writer: MessageWriter): void {
  expression(writer, 'masq', () => writer.attributeUint32be(1, 0x10)); // NF_NAT_RANGE_PROTO_RANDOM_FULLY
}

export function gotoVerdict(writer: MessageWriter, chain: string): void {
  writeVerdict(writer, NFT_GOTO, chain);
}

function writeVerdict(writer: MessageWriter, code: number, chain?: string): void {
  writer.nested(NFTA.DATA.VERDICT, () => {
    writer.attributeUint32be(NFTA.VERDICT.CODE, code);
    if (chain !== undefined) writer.attributeText(NFTA.VERDICT.CHAIN, chain);
  });
}

/** A value in the machine's order, as the metadata of packets are. */
export function hostNumber(writer: MessageWriter, type: number, value: number): void {
  writer.nested(type, () => writer.attributeUint32(NFTA.DATA.VALUE, value));
}

export function expression(
  writer: MessageWriter,
  name: string,
  write: () => void,
  type: number = NFTA.LIST.ELEM,
): void {
  writer.nested(type, () => {
    writer.attributeText(NFTA.EXPR.NAME, name);
    writer.nested(NFTA.EXPR.DATA, write);
  });
}

function numbers(writer: MessageWriter, name: string, ...attributes: readonly (readonly [number, number])[]): void {
  expression(writer, name, () => {
    for (const [type, value] of attributes) writer.attributeUint32be(type, value);
  });
}
