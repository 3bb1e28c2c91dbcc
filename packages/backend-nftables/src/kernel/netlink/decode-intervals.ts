import { ipv4Text, ipv6Text } from '@switchyard/core';
import { NFT_SET_ELEM_INTERVAL_END } from '@switchyard/netfilter';
import type { RawElement } from './decode-elements.ts';

export interface ReadBoundary {
  readonly address: bigint;
  readonly isEnd: boolean;
}

export function boundaryOf(bytes: Uint8Array, { key, keyLength, flags }: Readonly<RawElement>): ReadBoundary {
  let address = 0n;
  for (let index = 0; index < keyLength; index++) address = (address << 8n) | BigInt(bytes[key + index] ?? 0);
  return { address, isEnd: (flags & NFT_SET_ELEM_INTERVAL_END) !== 0 };
}

/** Type of a set's keys; names of interfaces are 16 bytes, padded with zeros. */
export type IntervalForm = 'ipv4' | 'ipv6' | 'interface';

/** Intervals in the form of `render-settings.ts`, sorted; ranges of other processes in the form of nft's JSON. */
export function intervalTexts(boundaries: readonly ReadBoundary[], form: IntervalForm): readonly string[] {
  const bits = form === 'ipv4' ? 32 : 128;
  // Where one interval ends and the next begins, the end comes first.
  const ordered = [...boundaries].sort((left, right) => {
    if (left.address !== right.address) return left.address < right.address ? -1 : 1;
    return Number(right.isEnd) - Number(left.isEnd);
  });
  const texts: string[] = [];
  let first: bigint | undefined;
  for (const { address, isEnd } of ordered) {
    if (first !== undefined) texts.push(intervalText(first, address - 1n, form));
    first = isEnd ? undefined : address;
  }
  if (first !== undefined) texts.push(intervalText(first, (1n << BigInt(bits)) - 1n, form));
  return texts.sort();
}

function intervalText(first: bigint, last: bigint, form: IntervalForm): string {
  const size = last - first + 1n;
  const isAligned = (size & (size - 1n)) === 0n && first % size === 0n;
  const length = (form === 'ipv4' ? 32 : 128) - (size.toString(2).length - 1);
  const text = form === 'interface' ? nameText : addressText;
  const range = (): string => JSON.stringify({ range: [text(first, form), text(last, form)] });
  if (!isAligned) return range();
  if (form !== 'interface') return `${addressText(first, form)}/${length}`;
  if (length === 128) return JSON.stringify(nameText(first));
  return length % 8 === 0 ? JSON.stringify(`${nameText(first)}*`) : range();
}

function addressText(address: bigint, form: IntervalForm): string {
  return form === 'ipv4' ? ipv4Text(bytesOf(address, 4), 0) : ipv6Text(bytesOf(address, 16), 0);
}

/** Without the zeros behind it. */
function nameText(name: bigint): string {
  return Buffer.from(bytesOf(name, 16)).toString('utf8').replace(/\0+$/, '');
}

function bytesOf(value: bigint, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => Number((value >> BigInt(8 * (length - 1 - index))) & 0xffn));
}
