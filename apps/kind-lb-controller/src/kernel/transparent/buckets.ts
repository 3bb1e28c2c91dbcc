import { createHash } from 'node:crypto';
import { compareIps, type IpAddress } from '@switchyard/core';

/** Connections are dealt into so many buckets by a hash of their client. Shares of 3 nodes differ by some 10 % of a share. */
export const bucketCount = 256;

/**
 * The node of each bucket: the one whose hash with the bucket's number is the highest. So a node that leaves gives up its
 * buckets only, one that joins takes what it needs from all, and nothing need be remembered. Empty without nodes.
 */
export function bucketNodes(nodes: readonly IpAddress[]): readonly IpAddress[] {
  const sorted = nodes.toSorted(compareIps);
  const weights = sorted.map(weightsOf);
  return Array.from({ length: nodes.length === 0 ? 0 : bucketCount }, (_, bucket) => {
    let best = 0;
    for (let index = 1; index < sorted.length; index++) {
      if (weight(weights, index, bucket) > weight(weights, best, bucket)) best = index;
    }
    return sorted[best] as IpAddress; // `best` is below the length
  });
}

/** A node's weight for each bucket. */
function weightsOf(node: IpAddress): Uint32Array {
  const bytes = new Uint8Array(bucketCount * 4);
  for (let block = 0; block * 32 < bytes.length; block++) {
    bytes.set(createHash('sha256').update(`${node} ${block}`).digest(), block * 32);
  }
  return new Uint32Array(bytes.buffer);
}

function weight(weights: readonly Uint32Array[], index: number, bucket: number): number {
  return weights[index]?.[bucket] ?? 0;
}

/**
 * The number by which rules name a node, 1 to 2^32-1: it must be the same in every process, for it is kept with
 * connections. It follows from the address; of two addresses with the same number, the later one takes the next that is free.
 */
export function nodeNumbers(nodes: Iterable<IpAddress>): ReadonlyMap<IpAddress, number> {
  const numbers = new Map<IpAddress, number>();
  const taken = new Set<number>([0]);
  for (const node of [...new Set(nodes)].toSorted(compareIps)) {
    let number = createHash('sha256').update(node).digest().readUInt32BE(0);
    while (taken.has(number)) number = (number + 1) % 2 ** 32;
    taken.add(number);
    numbers.set(node, number);
  }
  return numbers;
}
