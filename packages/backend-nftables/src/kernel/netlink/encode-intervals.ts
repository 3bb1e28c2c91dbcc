import { type IpAddress, ipToBytes, maxInterfaceNameLength } from '@switchyard/core';
import { NFT_SET_ELEM_INTERVAL_END, NFTA } from '@switchyard/netfilter';
import type { Change } from '../../render/elements.ts';
import { intervalKind } from '../../render/names.ts';
import type { BatchTarget } from './encode-batch.ts';
import { addElements, clearElements, writeElement, writeKey, maxListLength } from './write-objects.ts';

/** User data of the last element of an interval without an end: nft needs it to print the set. */
const openIntervalUserdata = Uint8Array.of(1, 4, 1, 0, 0, 0);

/** One boundary: from this address (or name) on, addresses are in the set, or no longer. */
interface Boundary {
  readonly address: Uint8Array;
  readonly isEnd: boolean;
  readonly isOpen: boolean;
}

/** Replaces the content of an interval set: CIDRs, or names of interfaces, that do not overlap. Boundaries are those that nft writes. */
export function writeIntervals(target: BatchTarget, change: Extract<Change, { readonly kind: 'replace' }>): void {
  clearElements(target, change.object);
  const intervalOf = intervalKind(change.object.slice(0, -1)) === 'interface' ? interfaceInterval : cidrInterval;
  const boundaries = boundariesOf(change.content.map(intervalOf));
  for (let next = 0; next < boundaries.length;) next = writeSome(target, change.object, { boundaries, next });
}

/** Writes one message; returns the index of the first boundary that did not fit. */
function writeSome(
  target: BatchTarget,
  object: string,
  { boundaries, next }: { readonly boundaries: readonly Boundary[]; readonly next: number },
): number {
  let index = next;
  addElements(target, object, (writer) => {
    const start = writer.length;
    for (const { address, isEnd, isOpen } of boundaries.slice(next)) {
      if (writer.length - start >= maxListLength) return;
      writeElement(writer, () => {
        if (isEnd) writer.attributeUint32be(NFTA.ELEM.FLAGS, NFT_SET_ELEM_INTERVAL_END);
        writeKey(writer, address);
        if (isOpen) writer.attributeBytes(NFTA.ELEM.USERDATA, openIntervalUserdata);
      });
      index++;
    }
  });
  return index;
}

interface Interval {
  readonly first: Uint8Array;
  /** Undefined: it reaches the highest address. */
  readonly behind: Uint8Array | undefined;
}

function boundariesOf(unsorted: readonly Interval[]): readonly Boundary[] {
  const intervals = unsorted.toSorted((left, right) => Buffer.compare(left.first, right.first));
  const boundaries = intervals.flatMap(({ first, behind }): Boundary[] => [
    { address: first, isEnd: false, isOpen: behind === undefined },
    ...(behind === undefined ? [] : [{ address: behind, isEnd: true, isOpen: false }]),
  ]);
  const [lowest] = boundaries;
  if (lowest === undefined || lowest.address.every((byte) => byte === 0)) return boundaries;
  // The stretch below the first interval is written out as one that is not in the set.
  return [{ address: new Uint8Array(lowest.address.length), isEnd: true, isOpen: false }, ...boundaries];
}

function cidrInterval(cidr: string): Interval {
  const slash = cidr.indexOf('/');
  const first = ipToBytes(cidr.slice(0, slash) as IpAddress); // canonical: it was a Cidr
  return { first, behind: addAt(first, Number(cidr.slice(slash + 1))) };
}

/** `"cni0"`, or `"veth*"` for all names that begin so. The kernel compares names as it does addresses, padded with zeros. */
function interfaceInterval(quoted: string): Interval {
  const isPrefix = quoted.endsWith('*"');
  const name = Buffer.from(quoted.slice(1, isPrefix ? -2 : -1), 'utf8');
  const first = new Uint8Array(maxInterfaceNameLength + 1); // a zero ends it
  first.set(name);
  return { first, behind: addAt(first, (isPrefix ? name.length : first.length) * 8) };
}

/** The address that is higher by one in bit `length`; undefined when there is none. */
function addAt(bytes: Uint8Array, length: number): Uint8Array | undefined {
  const sum = Uint8Array.from(bytes);
  let carry = length === 0 ? 256 : 1 << ((8 - (length % 8)) % 8);
  for (let index = Math.ceil(length / 8) - 1; index >= 0 && carry > 0; index--) {
    const value = (sum[index] ?? 0) + carry;
    sum[index] = value & 0xff;
    carry = value >> 8;
  }
  return carry > 0 ? undefined : sum;
}
