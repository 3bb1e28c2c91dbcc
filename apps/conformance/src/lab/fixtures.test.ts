import { ipFamilies, parseIp } from '@switchyard/core';
import { expect, test } from 'vitest';
import { catalogue } from '../cases/catalogue.ts';
import { scenarioCase, sequenceCase } from '../testing/cases.ts';
import { fixturesFor, needsRoute } from './lab-hosts.ts';

test('a case has its endpoints in every family of the lab, on the ports it uses', () => {
  expect(fixturesFor([scenarioCase('a')], ipFamilies)).toEqual({
    endpoints: [
      {
        name: 'echo-2-5',
        node: 'node2',
        addresses: { IPv4: '10.244.2.5', IPv6: 'fd00:10:244:2::5' },
        ports: new Set([8080]),
        hasSctp: false,
      },
    ],
    ownAddresses: new Set(),
  });
});

test('a program has four endpoints, with SCTP too', () => {
  const { endpoints } = fixturesFor([sequenceCase('a', () => Promise.resolve())], ['IPv6']);
  expect(endpoints.map(({ addresses, node }) => `${addresses.IPv6} ${node}`)).toEqual([
    'fd00:10:244:1::5 node1',
    'fd00:10:244:1::6 node1',
    'fd00:10:244:2::5 node2',
    'fd00:10:244:2::6 node2',
  ]);
  expect(endpoints.every(({ ports, hasSctp }) => hasSctp && ports.has(8080) && ports.has(8081))).toBe(true);
});

test('all cases together have each address once', () => {
  const { endpoints } = fixturesFor(catalogue({ dataplane: 'iptables', cell: 'dual' }), ipFamilies);
  expect(new Set(endpoints.map(({ addresses }) => addresses.IPv4)).size).toBe(endpoints.length);
  // Without the forty of a scenario that no packet is sent for: each endpoint is a pod with a process.
  expect(endpoints.length).toBeLessThan(20);
});

test.each([
  { address: '198.51.100.7', needs: true },
  { address: '10.96.0.10', needs: true },
  { address: '172.18.0.11', needs: false },
  { address: 'fd00:172:18::200', needs: false },
])('the client outside needs a route to $address: $needs', ({ address, needs }) => {
  expect(needsRoute(parseIp(address))).toBe(needs);
});
