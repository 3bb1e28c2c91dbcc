import { type IpFamily, parseCidr, parseIp, seconds, type ServiceForwarding } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import type { LoadBalancerSpec, PortSpec } from '../spec/load-balancer-spec.ts';
import { exampleSpec, nodeTargets, portSpec } from '../testing/example-specs.ts';
import { proxiedTable } from './proxied-table.ts';

const dns = portSpec(53, nodeTargets(30053), 'UDP');
const upAre = (...names: readonly string[]) => ({
  isUp: (_: unknown, { name }: { name: string }) => names.includes(name),
});

function services(
  specs: readonly LoadBalancerSpec[],
  { up = ['node1', 'node2'], own = [] as readonly string[], family = 'IPv4' as IpFamily } = {},
): readonly ServiceForwarding[] {
  const request = { specs, health: upAre(...up), ownAddresses: own.map(parseIp) };
  return [...proxiedTable(request, family).services.values()];
}

const one = (changes: Partial<LoadBalancerSpec> = {}, options = {}): ServiceForwarding => {
  const [only] = services([exampleSpec('dns', { ports: [dns], ...changes })], options);
  return only as ServiceForwarding;
};

test('a UDP port is masqueraded to all targets that are UP, for every sender', () => {
  const { key, frontends, endpoints } = one();
  expect(key).toBe('kind.default/dns.53-udp:/UDP');
  const decision = { kind: 'forward', to: 'Cluster', masquerade: true };
  const decisions = { pod: decision, node: decision, outside: decision };
  expect(frontends).toEqual([
    { kind: 'loadBalancerIP', address: '172.18.255.1', port: 53, decisions, allowedSources: 'any' },
  ]);
  expect(endpoints.Cluster.map(({ address, port }) => `${address}:${port}`)).toEqual([
    '172.18.0.11:30053',
    '172.18.0.12:30053',
  ]);
});

test.each([
  { up: ['node1'], draining: undefined, used: ['172.18.0.11'], known: ['172.18.0.11'] },
  { up: ['node1', 'node2'], draining: 'node1', used: ['172.18.0.12'], known: ['172.18.0.11', '172.18.0.12'] },
  { up: ['node1'], draining: 'node1', used: ['172.18.0.11'], known: ['172.18.0.11'] },
])('with $up UP and $draining draining, new flows go to $used and flows to $known go on', (row) => {
  const targets = nodeTargets(30053, row.draining === undefined ? {} : { draining: row.draining });
  const { endpoints, knownEndpoints } = one({ ports: [portSpec(53, targets, 'UDP')] }, { up: row.up });
  expect(endpoints.Cluster.map(({ address }) => address)).toEqual(row.used);
  expect(knownEndpoints.filter(({ serving }) => serving).map(({ address }) => address)).toEqual(row.known);
});

test('with no target UP clients are refused', () => {
  const { frontends } = one({}, { up: [] });
  expect(frontends.map(({ decisions }) => decisions.outside)).toEqual([{ kind: 'reject' }]);
});

test('source ranges of the family and session affinity are those of the load balancer', () => {
  const { frontends, sessionAffinity } = one({
    sourceRanges: [parseCidr('192.0.2.0/24'), parseCidr('2001:db8::/32')],
    sessionAffinity: { kind: 'clientIP', timeout: seconds(60) },
  });
  expect(frontends[0]?.allowedSources).toEqual(['192.0.2.0/24']);
  expect(sessionAffinity).toEqual({ kind: 'clientIP', timeout: 60_000 });
});

test('a published port answers on own addresses of the family too', () => {
  const { frontends } = one({}, { own: ['172.18.0.5', 'fd00:172:18::5'] });
  expect(frontends.map(({ address }) => address)).toEqual(['172.18.0.5', '172.18.255.1']);
});

describe('what is not in the table', () => {
  const tcp = portSpec(80, nodeTargets(30080));
  const rows: readonly (readonly [string, readonly PortSpec[], Partial<LoadBalancerSpec>, IpFamily])[] = [
    ['TCP, which HAProxy has', [tcp], {}, 'IPv4'],
    ['the transparent path', [dns], { path: 'transparent' }, 'IPv4'],
    ['a family without addresses', [dns], {}, 'IPv6'],
  ];
  test.each(rows)('%s', (_, ports, changes, family) => {
    expect(services([exampleSpec('dns', { ports, ...changes })], { family })).toEqual([]);
  });
});

test("ports on the same address, of Services with the same name in two clusters, do not get in each other's way", () => {
  const other = exampleSpec('dns', { ports: [{ ...dns, addresses: [parseIp('172.18.255.2')] }] });
  const specs = [
    exampleSpec('dns', {
      ports: [dns, portSpec(54, nodeTargets(30054), 'UDP'), portSpec(53, nodeTargets(30053), 'SCTP')],
    }),
    { ...other, id: { ...other.id, cluster: 'second' } },
  ];
  const found = services(specs).map(({ key, frontends }) => `${key} ${frontends.map(({ address }) => address).join()}`);
  expect(found).toEqual([
    'kind.default/dns.53-sctp:/SCTP 172.18.255.1',
    'kind.default/dns.53-udp:/UDP 172.18.255.1',
    'kind.default/dns.54-udp:/UDP 172.18.255.1',
    'second.default/dns.53-udp:/UDP 172.18.255.2',
  ]);
});

test('targets with different ports are all used', () => {
  const [first, second] = nodeTargets(8053) as [PortSpec['targets'][number], PortSpec['targets'][number]];
  const { endpoints } = one({ ports: [portSpec(53, [first, { ...second, port: nodeTargets(9053)[0]!.port }], 'UDP')] });
  expect(endpoints.Cluster.map(({ port }) => port)).toEqual([8053, 9053]);
});
