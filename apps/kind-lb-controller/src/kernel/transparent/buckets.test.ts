import { parseIp } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { bucketCount, bucketNodes, nodeNumbers } from './buckets.ts';

const nodes = (count: number) => Array.from({ length: count }, (_, index) => parseIp(`172.18.0.${11 + index}`));

describe('bucketNodes', () => {
  test.each([1, 2, 3, 5, 10])('%i nodes get about the same number of buckets', (count) => {
    const shares = Map.groupBy(bucketNodes(nodes(count)), (node) => node);
    expect(shares.size).toBe(count);
    const fair = bucketCount / count;
    // Chance deviates by some sqrt(fair); the addresses are fixed, so this is no matter of luck.
    for (const { length } of shares.values()) expect(Math.abs(length - fair)).toBeLessThan(2.5 * Math.sqrt(fair));
  });

  test('a node that joins takes its buckets from others, and no other bucket moves', () => {
    const [before, after] = [bucketNodes(nodes(3)), bucketNodes(nodes(4))];
    const moved = after.filter((node, bucket) => node !== before[bucket]);
    expect(new Set(moved)).toEqual(new Set([parseIp('172.18.0.14')]));
  });

  test('the order in which nodes are named does not matter', () => {
    expect(bucketNodes(nodes(4).toReversed())).toEqual(bucketNodes(nodes(4)));
  });

  test('without nodes there are no buckets', () => {
    expect(bucketNodes([])).toEqual([]);
  });
});

describe('nodeNumbers', () => {
  test('a number follows from the address alone, in every process', () => {
    expect([...nodeNumbers(nodes(2))]).toEqual([
      ['172.18.0.11', 0x47b97ea7],
      ['172.18.0.12', 0xfc365c45],
    ]);
  });

  test('2,000 nodes have 2,000 numbers, none of them 0', () => {
    const many = Array.from({ length: 2000 }, (_, index) => parseIp(`10.0.${index >> 8}.${index & 255}`));
    const numbers = new Set(nodeNumbers(many).values());
    expect(numbers.size).toBe(2000);
    expect(numbers.has(0)).toBe(false);
  });
});
