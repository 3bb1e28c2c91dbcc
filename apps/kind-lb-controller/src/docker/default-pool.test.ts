import { cidrContains, parseCidr, parseIp } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { checkPool, defaultPool, unusableAddresses } from './default-pool.ts';

test.each([
  ["kind's usual IPv4 network", '172.18.0.0/16', '172.18.255.0/24'],
  ['a large one', '10.0.0.0/8', '10.255.255.0/24'],
  ["Docker Desktop's", '192.168.240.0/20', '192.168.255.0/24'],
  ['a /22: just four times as large', '10.1.4.0/22', '10.1.7.0/24'],
  ['a /23', '10.1.4.0/23', '10.1.5.128/25'],
  ["Podman's /24", '10.89.0.0/24', '10.89.0.192/26'],
  ['a /28', '10.89.0.16/28', '10.89.0.28/30'],
  ['a /29: one address besides broadcast', '10.89.0.8/29', '10.89.0.14/31'],
  ['a /30: its quarter is the broadcast address', '10.89.0.8/30', undefined],
  ['a single address', '10.89.0.8/32', undefined],
  ["kind's IPv6 network", 'fc00:f853:ccd:e793::/64', 'fc00:f853:ccd:e793:ffff:ffff:ffff:0/112'],
  ['a small IPv6 network', 'fd00::/120', 'fd00::c0/122'],
  ['an IPv6 network that ends in the middle of a byte', 'fd00::/110', 'fd00::3:0/112'],
  ['a tiny IPv6 network', 'fd00::/125', 'fd00::6/127'],
  ['two IPv6 addresses', 'fd00::/127', undefined],
])('the pool of %s', (_, subnet, pool) => {
  expect(defaultPool(parseCidr(subnet))).toBe(pool);
});

test.each([
  ['172.18.0.0/16', '172.18.255.1'],
  ['10.89.0.0/24', '10.89.0.193'],
  ['10.89.0.8/29', '10.89.0.14'],
  ['fc00:f853:ccd:e793::/64', 'fc00:f853:ccd:e793:ffff:ffff:ffff:1'],
] as const)('the first Service on %s gets %s', (text, first) => {
  const subnet = parseCidr(text);
  expect(cidrContains(defaultPool(subnet)!, parseIp(first))).toBe(true);
  expect(unusableAddresses(subnet)).not.toContain(first);
});

test('addresses that no host may have', () => {
  expect(unusableAddresses(parseCidr('10.89.0.8/29'))).toEqual(['10.89.0.8', '10.89.0.9', '10.89.0.15']);
  expect(unusableAddresses(parseCidr('fd00::/64'))).toEqual(['fd00::', 'fd00::1']);
});

describe('--pool', () => {
  const subnets = ['172.18.0.0/16', 'fc00::/64'].map(parseCidr);

  test.each(['172.18.250.0/24', '172.18.0.0/16', 'fc00::ff00/120'])('may be %s, a part of the network', (text) => {
    expect(() => checkPool([parseCidr(text)], 'kind', subnets)).not.toThrow();
  });

  test.each(['172.19.0.0/24', '172.0.0.0/8', 'fd00::/120'])('may not be %s', (text) => {
    expect(() => checkPool([parseCidr(text)], 'kind', subnets)).toThrow(
      `--pool: ${text} is not inside network kind, which has 172.18.0.0/16 and fc00::/64`,
    );
  });
});
