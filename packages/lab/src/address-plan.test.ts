import { cidrContains, ipFamilies, parseCidr } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import {
  clusterCidrs,
  hostAddresses,
  hostNumbers,
  maxNodes,
  nextPodNumber,
  nodeNetworks,
  podAddresses,
  podCidrs,
} from './network-plan.ts';

test.each([
  { who: 'the client', number: hostNumbers.client, v4: '172.18.0.100', v6: 'fd00:172:18::100' },
  { who: 'the load balancer', number: hostNumbers.loadBalancer, v4: '172.18.0.50', v6: 'fd00:172:18::50' },
  { who: 'the API server', number: hostNumbers.apiServer, v4: '172.18.0.10', v6: 'fd00:172:18::10' },
  { who: 'node1', number: hostNumbers.firstNode, v4: '172.18.0.11', v6: 'fd00:172:18::11' },
])('$who has $v4 and $v6', ({ number, v4, v6 }) => {
  expect(hostAddresses(number, ipFamilies)).toEqual({ IPv4: v4, IPv6: v6 });
});

test('a family that the lab does not have has no address', () => {
  expect(hostAddresses(100, ['IPv6'])).toEqual({ IPv6: 'fd00:172:18::100' });
  expect(podCidrs(1, ['IPv4'])).toEqual({ IPv4: '10.244.1.0/24' });
});

test('all hosts are in the node network and no node takes a server address', () => {
  const numbers = Array.from({ length: maxNodes }, (_, index) => hostNumbers.firstNode + index);
  for (const number of numbers) {
    expect(Object.values<number>(hostNumbers).slice(3)).not.toContain(number);
    for (const family of ipFamilies) {
      expect(cidrContains(parseCidr(nodeNetworks[family]), hostAddresses(number, ipFamilies)[family]!)).toBe(true);
    }
  }
});

test('every pod is in its node CIDR, in the cluster CIDR, and in no other node CIDR', () => {
  for (const family of ipFamilies) {
    const ip = podAddresses(3, 254, ipFamilies)[family]!;
    expect(cidrContains(parseCidr(podCidrs(3, ipFamilies)[family]!), ip)).toBe(true);
    expect(cidrContains(parseCidr(podCidrs(4, ipFamilies)[family]!), ip)).toBe(false);
    expect(cidrContains(parseCidr(clusterCidrs[family]), ip)).toBe(true);
  }
});

describe('the next pod number', () => {
  test.each([
    { says: 'starts at 2', last: undefined, taken: [], next: 2 },
    { says: 'follows the last one, not the lowest free one', last: 7, taken: [], next: 8 },
    { says: 'skips taken ones', last: 7, taken: [8, 9], next: 10 },
    { says: 'goes round at 254', last: 254, taken: [2], next: 3 },
  ])('$says', ({ last, taken, next }) => {
    expect(nextPodNumber(last, (number) => (taken as number[]).includes(number))).toBe(next);
  });

  test('is refused when all are taken', () => {
    expect(() => nextPodNumber(5, () => true)).toThrow(/all 253 addresses/);
  });
});
