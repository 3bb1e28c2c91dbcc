import { ipv4Text, ipv6Text } from '@switchyard/core';
import { NFT_SET_ELEM_INTERVAL_END } from './constants.ts';
import type { RawElement } from './decode-elements.ts';

/** One boundary of an interval set, as a number. */
export interface ReadBoundary {
  readonly address: bigint;
  readonly isEnd: boolean;
}

/** The boundary that an element of an interval set is. */
export function boundaryOf(bytes: Uint8Array, { key, keyLength, flags }: Readonly<RawElement>): ReadBoundary {
  let address = 0n;
  for (let index = 0; index < keyLength; index++) address = (address << 8n) | BigInt(bytes[key + index] ?? 0);
  return { address, isEnd: (flags & NFT_SET_ELEM_INTERVAL_END) !== 0 };
}

/**
 * The intervals between boundaries as CIDRs, sorted by their text. What is no CIDR, and so not ours, looks as nft's
 * JSON has it.
 */
export function intervalTexts(boundaries: readonly ReadBoundary[], bits: 32 | 128): readonly string[] {
  // Where one interval ends and the next begins, the end comes first.
  const ordered = [...boundaries].sort((left, right) => {
    if (left.address !== right.address) return left.address < right.address ? -1 : 1;
    return Number(right.isEnd) - Number(left.isEnd);
  });
  const texts: string[] = [];
  let first: bigint | undefined;
  for (const { address, isEnd } of ordered) {
    if (first !== undefined) texts.push(intervalText(first, address - 1n, bits));
    first = isEnd ? undefined : address;
  }
  if (first !== undefined) texts.push(intervalText(first, (1n << BigInt(bits)) - 1n, bits));
  return texts.sort();
}

function intervalText(first: bigint, last: bigint, bits: 32 | 128): string {
  const size = last - first + 1n;
  const isCidr = (size & (size - 1n)) === 0n && first % size === 0n;
  if (!isCidr) return JSON.stringify({ range: [addressText(first, bits), addressText(last, bits)] });
  return `${addressText(first, bits)}/${bits - (size.toString(2).length - 1)}`;
}

function addressText(address: bigint, bits: 32 | 128): string {
  const bytes = Uint8Array.from({ length: bits / 8 }, (_, index) =>
    Number((address >> BigInt(bits - 8 * (index + 1))) & 0xffn),
  );
  return bits === 32 ? ipv4Text(bytes, 0) : ipv6Text(bytes, 0);
}
