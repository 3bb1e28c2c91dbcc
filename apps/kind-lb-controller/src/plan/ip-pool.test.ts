import { type IpAddress, type IpFamily, parseCidr, parseIp, parsePort, serviceKey } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { type LoadBalancerKey, loadBalancerKey } from '../spec/load-balancer-spec.ts';
import { type AddressRequest, type AddressSource, assignAddresses } from './ip-pool.ts';

interface RequestFixture {
  readonly name: string;
  readonly cluster?: string;
  readonly createdAt?: string;
  readonly families?: readonly IpFamily[];
  readonly ports?: readonly number[];
  readonly held?: readonly string[];
  readonly requested?: string;
}

const request = (fixture: RequestFixture): AddressRequest => ({
  id: { cluster: fixture.cluster ?? 'kind', service: serviceKey('default', fixture.name) },
  createdAt: fixture.createdAt ?? '2026-01-01T00:00:00Z',
  ipFamilies: fixture.families ?? ['IPv4'],
  ports: (fixture.ports ?? [80]).map((port) => ({ port: parsePort(port), protocol: 'TCP' })),
  held: (fixture.held ?? []).map(parseIp),
  requestedIp: fixture.requested === undefined ? undefined : parseIp(fixture.requested),
});
const key = (name: string): LoadBalancerKey => loadBalancerKey(request({ name }).id);
const pool = (...cidrs: readonly string[]): AddressSource => ({ kind: 'pool', cidrs: cidrs.map(parseCidr) });
const shared = (...addresses: readonly string[]): AddressSource => ({
  kind: 'shared',
  addresses: addresses.map(parseIp),
});
const addressesOf = (
  fixtures: readonly RequestFixture[],
  source: AddressSource,
): Readonly<Record<string, readonly IpAddress[]>> =>
  Object.fromEntries(
    [...assignAddresses(fixtures.map(request), source).values()].map(({ id, addresses }) => [
      id.service.slice('default/'.length),
      addresses,
    ]),
  );

describe('from a pool', () => {
  test.each([
    {
      title: 'the lowest free address, by age and then by name; never the network or broadcast address',
      fixtures: [{ name: 'c', createdAt: '2025-01-01T00:00:00Z' }, { name: 'b' }, { name: 'a' }],
      cidrs: ['192.0.2.0/29'],
      expected: { c: ['192.0.2.1'], a: ['192.0.2.2'], b: ['192.0.2.3'] },
    },
    {
      title: 'a held address is kept, though an older Service could use it',
      fixtures: [{ name: 'old' }, { name: 'young', createdAt: '2026-02-01T00:00:00Z', held: ['192.0.2.1'] }],
      cidrs: ['192.0.2.0/29'],
      expected: { old: ['192.0.2.2'], young: ['192.0.2.1'] },
    },
    {
      title: 'a requested address comes before a held one',
      fixtures: [{ name: 'a', held: ['192.0.2.1'], requested: '192.0.2.5' }],
      cidrs: ['192.0.2.0/29'],
      expected: { a: ['192.0.2.5'] },
    },
    {
      title: 'an address outside the pool is not kept',
      fixtures: [{ name: 'a', held: ['198.51.100.7'], requested: '198.51.100.8' }],
      cidrs: ['192.0.2.0/29'],
      expected: { a: ['192.0.2.1'] },
    },
    {
      title: 'two who hold the same address: the older one keeps it',
      fixtures: [
        { name: 'young', createdAt: '2026-02-01T00:00:00Z', held: ['192.0.2.4'] },
        { name: 'old', held: ['192.0.2.4'] },
      ],
      cidrs: ['192.0.2.0/29'],
      expected: { old: ['192.0.2.4'], young: ['192.0.2.1'] },
    },
    {
      title: 'one address per family, IPv4 first',
      fixtures: [{ name: 'a', families: ['IPv6', 'IPv4'] as const }],
      cidrs: ['2001:db8::/64', '192.0.2.0/24'],
      expected: { a: ['192.0.2.1', '2001:db8::1'] },
    },
    {
      title: 'an exhausted pool gives nothing, and the next CIDR is used before that',
      fixtures: [{ name: 'a' }, { name: 'b' }, { name: 'c' }],
      cidrs: ['192.0.2.7/32', '192.0.2.9/32'],
      expected: { a: ['192.0.2.7'], b: ['192.0.2.9'], c: [] },
    },
    {
      title: 'both addresses of a /31 are hosts (RFC 3021)',
      fixtures: [{ name: 'a' }, { name: 'b' }],
      cidrs: ['192.0.2.254/31'],
      expected: { a: ['192.0.2.254'], b: ['192.0.2.255'] },
    },
    {
      title: 'carries go through all groups of an IPv6 address',
      fixtures: [{ name: 'a', families: ['IPv6'] as const, held: ['2001:db8:0:0:ffff:ffff:ffff:ffff'] }],
      cidrs: ['2001:db8::/64'],
      expected: { a: ['2001:db8::ffff:ffff:ffff:ffff'] },
    },
  ])('$title', ({ fixtures, cidrs, expected }) => {
    expect(addressesOf(fixtures, pool(...cidrs))).toEqual(expected);
    expect(addressesOf([...fixtures].reverse(), pool(...cidrs))).toEqual(expected);
  });

  test('missing addresses are reported by family', () => {
    const [grant] = assignAddresses(
      [request({ name: 'a', families: ['IPv4', 'IPv6'] })],
      pool('192.0.2.0/29'),
    ).values();
    expect(grant?.missing).toEqual([{ ipFamily: 'IPv6', reason: 'notOffered' }]);
  });
});

describe('shared addresses', () => {
  const young = { name: 'young', createdAt: '2026-02-01T00:00:00Z', ports: [80, 443] };
  const old = { name: 'zold', ports: [80] };
  test('a port belongs to the older Service; the other ports of the younger one are free', () => {
    const grants = assignAddresses([young, old].map(request), shared('192.0.2.50'));
    expect(grants.get(key('zold'))?.conflicts).toEqual([]);
    expect(grants.get(key('young'))?.conflicts).toEqual([
      { address: '192.0.2.50', port: 80, protocol: 'TCP', heldBy: { cluster: 'kind', service: 'default/zold' } },
    ]);
  });
  test('everybody gets the address of each family it has', () => {
    const fixtures: readonly RequestFixture[] = [
      { name: 'a', families: ['IPv6', 'IPv4'] },
      { name: 'b', ports: [81] },
    ];
    expect(addressesOf(fixtures, shared('2001:db8::50', '192.0.2.50'))).toEqual({
      a: ['192.0.2.50', '2001:db8::50'],
      b: ['192.0.2.50'],
    });
  });
});
