import { parseCidr, parseIp } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { lbService, type RawServiceSpec } from '../testing/builders.ts';
import { planOf } from '../testing/plan-input.ts';
import { node1, plan, problemsOf, specOf } from '../testing/plan-one.ts';
import type { AddressSource } from './ip-pool.ts';
import { problemText } from './problem.ts';

describe('loadBalancerIP', () => {
  const asks = (ip: string, parts: RawServiceSpec = {}): RawServiceSpec => ({
    ...parts,
    spec: { ...parts.spec, loadBalancerIP: ip },
  });
  test.each<[title: string, parts: RawServiceSpec, addresses: readonly string[], problems: readonly string[]]>([
    ['a free one of the pool is given', asks('172.18.255.200'), ['172.18.255.200'], []],
    [
      'for one family, the other gets any',
      asks('fd00:172:18:ff::99', { spec: { ipFamilies: ['IPv4', 'IPv6'] } }),
      ['172.18.255.1', 'fd00:172:18:ff::99'],
      [],
    ],
    [
      'outside of the pool',
      asks('203.0.113.1'),
      ['172.18.255.1'],
      [
        'loadBalancerIP 203.0.113.1 is not given: addresses of load balancers are from 172.18.255.0/24 and fd00:172:18:ff::/112',
      ],
    ],
    [
      'a broadcast address',
      asks('172.18.255.255'),
      ['172.18.255.1'],
      ['loadBalancerIP 172.18.255.255 is not given: it is the first address of its network, or the broadcast address'],
    ],
    [
      'of another family',
      asks('fd00:172:18:ff::99'),
      ['172.18.255.1'],
      ['loadBalancerIP fd00:172:18:ff::99 is not given: the Service has no address of its family; see its ipFamilies'],
    ],
    [
      'a name',
      asks('lb.example.com'),
      ['172.18.255.1'],
      ['loadBalancerIP lb.example.com is not given: it is not an IP address'],
    ],
  ])('%s', (_, parts, addresses, problems) => {
    const one = plan(parts);
    expect(specOf(one).addresses).toEqual(addresses);
    expect(problemsOf(one)).toEqual(problems);
  });
});

describe('what cannot be served', () => {
  test('a family of which there are no addresses; the other one is', () => {
    const ipv4: AddressSource = { kind: 'pool', cidrs: [parseCidr('172.18.255.0/24')] };
    const one = plan({ spec: { ipFamilies: ['IPv4', 'IPv6'] } }, { source: ipv4 });
    expect(specOf(one).addresses).toEqual(['172.18.255.1']);
    expect(problemsOf(one)).toEqual(['there is no IPv6 address to give: load balancers here have no IPv6 addresses']);
  });
  test('anything, when the pool is exhausted', () => {
    const full: AddressSource = {
      kind: 'pool',
      cidrs: [parseCidr('172.18.255.7/32')],
      reserved: [parseIp('172.18.255.7')],
    };
    const one = plan({}, { source: full });
    expect(one.planned).toEqual({ status: 'remove' });
    expect(problemsOf(one)).toEqual([
      'there is no IPv4 address to give: all are taken; delete a Service, or give a larger --pool',
    ]);
  });
  test('a port and protocol that an older Service has on the shared address', () => {
    const source: AddressSource = { kind: 'shared', addresses: [parseIp('172.18.0.50')] };
    const ports = [
      { name: 'u', port: 80, nodePort: 30081, protocol: 'UDP' },
      { name: 't', port: 80, nodePort: 30080, protocol: 'TCP' },
    ];
    const young = lbService('a/young', { spec: { ports }, createdAt: '2026-05-01T00:00:00Z' });
    const [first, second] = planOf({ services: [lbService('b/old'), young], nodes: [node1], source });
    expect(specOf(first!).ports.map(({ port, protocol }) => `${port}/${protocol}`)).toEqual(['80/UDP']);
    expect(problemsOf(first!)).toEqual([
      'port 80/TCP is not load-balanced on 172.18.0.50: Service b/old has it; use another port',
    ]);
    expect(first!.problems.map((problem) => problemText(problem, 'other'))).toEqual([
      'port 80/TCP is not load-balanced on 172.18.0.50: Service b/old of cluster kind has it; use another port',
    ]);
    expect(problemsOf(second!)).toEqual([]);
  });
  test('Local without a port to check', () => {
    const one = plan({ spec: { externalTrafficPolicy: 'Local' } });
    expect(one.planned).toEqual({ status: 'keep' });
    expect(problemsOf(one)).toEqual([
      'externalTrafficPolicy is Local and there is no healthCheckNodePort, so no node can be checked',
    ]);
  });
  test.each<[title: string, parts: RawServiceSpec]>([
    ['another type', { spec: { type: 'NodePort' } }],
    ['the class of another', { spec: { loadBalancerClass: 'example.com/x' } }],
    ['being deleted', { isBeingDeleted: true }],
  ])('a Service with %s', (_, parts) => {
    expect(plan(parts)).toMatchObject({ planned: { status: 'remove' }, problems: [], excludedNodes: [] });
  });
  test('the own class is served', () => {
    expect(plan({ spec: { loadBalancerClass: 'switchyard.dev/lb' } }).planned.status).toBe('run');
  });
});
