import { type Cidr, parseCidr, parseIp } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { createAllocations } from './allocations.ts';

const cidr = (text: string): Cidr => parseCidr(text);

describe('cluster IPs', () => {
  test('every host address of a small range is given once, then none', () => {
    const pools = createAllocations([cidr('10.0.0.0/29')], () => 0.5);
    const given: string[] = [];
    for (let ip = pools.freeIp('IPv4'); ip !== undefined; ip = pools.freeIp('IPv4')) {
      pools.replace([], [`ip/${ip}`]);
      given.push(ip);
    }
    expect(given.toSorted()).toEqual([1, 2, 3, 4, 5, 6].map((n) => `10.0.0.${n}`));
  });

  test('IPv6 addresses are canonical', () => {
    const pools = createAllocations([cidr('fd00:10:96::/112')], () => 0);
    expect(pools.freeIp('IPv6')).toBe('fd00:10:96::1');
    expect(pools.freeIp('IPv4')).toBeUndefined();
    expect(pools.isInRange(parseIp('fd00:10:96::ffff'))).toBe(true);
    expect(pools.isInRange(parseIp('fd00:10:97::1'))).toBe(false);
  });

  test('a released address can be given again', () => {
    const pools = createAllocations([cidr('10.0.0.0/30')], () => 0);
    pools.replace([], ['ip/10.0.0.1', 'ip/10.0.0.2']);
    expect(pools.freeIp('IPv4')).toBeUndefined();
    pools.replace(['ip/10.0.0.1'], []);
    expect(pools.freeIp('IPv4')).toBe('10.0.0.1');
  });
});

describe('node ports', () => {
  test('free ports avoid every protocol and the ones just chosen', () => {
    const pools = createAllocations([cidr('10.0.0.0/24')], () => 0);
    pools.replace([], ['port/UDP/30000', 'port/TCP/30000', 'port/health/30001']);
    expect(pools.freePort(new Set([30_002]))).toBe(30_003);
    pools.replace(['port/UDP/30000'], []);
    expect(pools.freePort(new Set())).toBe(30_002);
    pools.replace(['port/TCP/30000'], []);
    expect(pools.freePort(new Set())).toBe(30_000);
  });

  test('when all are taken there is none', () => {
    const pools = createAllocations([cidr('10.0.0.0/24')], () => 0);
    pools.replace(
      [],
      Array.from({ length: 2_768 }, (_, index) => `port/TCP/${30_000 + index}`),
    );
    expect(pools.freePort(new Set())).toBeUndefined();
  });
});
