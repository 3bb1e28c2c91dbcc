import { InvariantError } from '@switchyard/core';
import { type HeaderField, metaKey } from '@switchyard/netfilter/expressions';
import { type PartType, priorityMask, randomModulus } from '../../render/rules/model.ts';

/** Byte order of a value, as nft notes it: none for concatenations, the machine's, or the network's. */
export const byteOrder = { none: 0, host: 1, network: 2 } as const;

/** One part of a key or of data, as nft and the kernel know it. */
export interface PartLayout {
  /** nft's number of the type. The kernel keeps it without looking at it. */
  readonly type: number;
  /** Bytes. */
  readonly length: number;
  readonly order: (typeof byteOrder)[keyof typeof byteOrder];
  /** The expression that `typeof` was given; undefined: declared by `type`. */
  readonly expression?: PartExpression;
}

/** An expression in the user data of a set: nft prints `typeof` from it. */
export type PartExpression =
  | { readonly kind: 'meta'; readonly key: number }
  | { readonly kind: 'payload'; readonly protocol: number; readonly field: number }
  | { readonly kind: 'random'; readonly modulus: number }
  | { readonly kind: 'verdict' };

/** Where nft knows the field by; numbers of its protocol descriptions. */
interface PayloadField extends HeaderField {
  readonly protocol: number;
  readonly field: number;
}

const payloadFields: Readonly<Partial<Record<PartType, PayloadField>>> = {
  'ip saddr': { base: 1, offset: 12, length: 4, protocol: 12, field: 11 },
  'ip daddr': { base: 1, offset: 16, length: 4, protocol: 12, field: 12 },
  'ip6 saddr': { base: 1, offset: 8, length: 16, protocol: 13, field: 8 },
  'ip6 daddr': { base: 1, offset: 24, length: 16, protocol: 13, field: 9 },
  'th dport': { base: 2, offset: 2, length: 2, protocol: 11, field: 2 },
};

/** Where a field lies in a header; undefined for what is no header field. */
export function headerField(part: PartType): HeaderField | undefined {
  return payloadFields[part];
}

/** Which IP family a packet must be of to have this field; undefined: any. */
export function familyOf(part: PartType): 'ipv4' | 'ipv6' | undefined {
  if (part.startsWith('ip6 ')) return 'ipv6';
  return part.startsWith('ip ') ? 'ipv4' : undefined;
}

const plain: Readonly<Partial<Record<PartType, PartLayout>>> = {
  'meta l4proto': { type: 12, length: 1, order: byteOrder.host, expression: { kind: 'meta', key: metaKey.l4proto } },
  'meta priority': { type: 23, length: 4, order: byteOrder.host, expression: { kind: 'meta', key: metaKey.priority } },
  'meta time': { type: 43, length: 8, order: byteOrder.host, expression: { kind: 'meta', key: metaKey.time } },
  iifname: { type: 41, length: 16, order: byteOrder.host, expression: { kind: 'meta', key: metaKey.iifname } },
  mark: { type: 19, length: 4, order: byteOrder.host },
  verdict: { type: 0xffffff00, length: 0, order: byteOrder.none, expression: { kind: 'verdict' } },
};

/** Types of addresses and ports, by nft's number. */
const type = { ipv4: 7, ipv6: 8, port: 13, integer: 4 } as const;

export function partLayout(part: PartType): PartLayout {
  const found = plain[part];
  if (found !== undefined) return found;
  const modulus = randomModulus(part);
  if (modulus !== undefined) {
    return { type: type.integer, length: 4, order: byteOrder.host, expression: { kind: 'random', modulus } };
  }
  const field = payloadFields[part];
  if (field === undefined || priorityMask(part) !== undefined) {
    throw new InvariantError(`no map or set can be declared with ${JSON.stringify(part)}`);
  }
  const { protocol, field: number, length } = field;
  return {
    type: type[familyOf(part) ?? 'port'],
    length,
    order: byteOrder.network,
    expression: { kind: 'payload', protocol, field: number },
  };
}

/** Bytes of a part in a concatenation or in registers: a multiple of four. */
export function paddedLength({ length }: Pick<PartLayout, 'length'>): number {
  return (length + 3) & ~3;
}
