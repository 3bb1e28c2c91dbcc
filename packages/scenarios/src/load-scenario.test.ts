import { ebpfTraits } from '@switchyard/backend-ebpf/traits';
import { iptablesTraits } from '@switchyard/backend-iptables/traits';
import { nftablesTraits } from '@switchyard/backend-nftables/traits';
import { describe, expect, test } from 'vitest';
import { loadScenario } from './load-scenario.ts';
import { ipv6TwinOf, ipv6TwinOfCidr } from './other-family.ts';

const good = `name: n
why: w
given:
  services:
    - { name: a/b, clusterIP: 10.96.0.10, ports: [{ port: 80 }] }
steps:
  - { from: pod, to: '10.96.0.10:80/TCP', expect: reject }
`;

describe('loadScenario', () => {
  test('one scenario per family, with the addresses of that family and the defaults of the API', () => {
    const [v4, v6] = loadScenario('x', good);
    expect([v4?.ipFamily, v6?.ipFamily]).toEqual(['IPv4', 'IPv6']);
    expect(v6?.services[0]).toMatchObject({
      clusterIP: 'fd00:10:96::10',
      type: 'ClusterIP',
      internalTrafficPolicy: 'Cluster',
    });
    expect(v4?.steps).toEqual([
      {
        kind: 'flow',
        line: 7,
        flow: {
          from: 'pod',
          fromEndpoint: undefined,
          isFromItself: false,
          sourcePort: undefined,
          kept: undefined,
          to: '10.96.0.10',
          port: 80,
          protocol: 'TCP',
          expect: { kind: 'reject' },
        },
      },
    ]);
  });

  test.each([
    {
      title: 'an unknown field',
      change: ['port: 80', 'prot: 80'],
      message: /^x\.yaml:5: given\.services\.0\.ports\.0/,
    },
    {
      title: 'an unknown field of a flow',
      change: ['expect: reject', 'expext: reject'],
      message: /^x\.yaml:7: steps\.0\.expe.t: Invalid key/,
    },
    {
      title: 'an unknown field of a change',
      change: ['  - { from', '  - remove-endpoint: { service: shop/cart, ips: 10.244.1.5 }\n  - { from'],
      message: /^x\.yaml:7: steps\.0\.remove-endpoint\.ip/,
    },
    {
      title: 'a step that is none',
      change: ['  - { from', '  - delete-service: shop/cart\n  - { from'],
      message: /^x\.yaml:7: steps\.0: a step is a flow \(from, to, expect\) or one of health-check, put-service, /,
    },
    { title: 'a wrong value', change: ['reject', 'refuse'], message: /^x\.yaml:7: / },
    { title: 'broken YAML', change: ['{ port: 80 }', '{ port: 80'], message: /^x\.yaml:\d+: / },
    {
      title: 'an address outside the plan',
      change: ["'10.96.0.10:80/TCP'", "'192.0.2.1:80/TCP'"],
      message: /^x\.yaml:7: steps\.0\.to: 192\.0\.2\.1 is not in the address plan/,
    },
    {
      title: 'the other family in a scenario that has but one',
      change: ['expect: reject', 'expect: reject, family: other'],
      message: /^x\.yaml:7: steps\.0: only a dualStack scenario has another family/,
    },
    {
      title: 'a set of endpoints of which only some have ports',
      change: ['reject', "{ forward: ['10.244.1.5:80', 10.244.2.5], masquerade: false }"],
      message: /^x\.yaml:7: steps\.0\.expect: either all endpoints have a port or none has/,
    },
    {
      title: 'a limit to some runs without a reason',
      change: ['why: w', 'why: w\nruns: { only: [table] }'],
      message: /^x\.yaml:3: runs/,
    },
    {
      title: 'a limit to some dataplanes without a reason',
      change: ['why: w', 'why: w\ndataplanes: { run: [nftables] }'],
      message: /^x\.yaml:3: dataplanes/,
    },
    {
      title: 'a dataplane that does not exist',
      change: ['why: w', 'why: w\ndataplanes: { run: [ipvs], because: b }'],
      message: /^x\.yaml:3: dataplanes\.run\.0/,
    },
    {
      title: 'an expectation of one dataplane only',
      change: ['expect: reject', 'expect: { iptables: reject }'],
      message: /^x\.yaml:7: steps\.0/,
    },
    {
      title: 'a scenario without steps',
      change: ["  - { from: pod, to: '10.96.0.10:80/TCP', expect: reject }", '  []'],
      message: /^x\.yaml:7: steps/,
    },
  ])('$title is refused with file and line', ({ change: [from = '', to = ''], message }) => {
    expect(() => loadScenario('x', good.replace(from, to))).toThrow(message);
  });
});

test('a dual-stack Service has both families; endpoints, flows and health checks have one each', () => {
  const text = good
    .replace('why: w', 'why: w\ndualStack: true')
    .replace('expect: reject }', "expect: { forward: ['10.244.1.5:8081'], masquerade: false }, family: other }")
    .replace('[{ port: 80 }] }', '[{ port: 80 }], externalIPs: [203.0.113.5] }');
  const [v4, v6] = loadScenario('x', text);
  expect(v4?.services[0]).toMatchObject({
    clusterIP: '10.96.0.10',
    otherClusterIP: 'fd00:10:96::10',
    externalIPs: ['203.0.113.5', '2001:db8:113::5'],
  });
  expect(v6?.services[0]).toMatchObject({ clusterIP: 'fd00:10:96::10', otherClusterIP: '10.96.0.10' });
  expect(v4?.steps[0]).toMatchObject({
    flow: { to: 'fd00:10:96::10', expect: { to: [{ address: 'fd00:10:244:1::5', port: 8081 }] } },
  });
});

test('where dataplanes differ, each has its own expectation', () => {
  const text = good.replace('expect: reject', 'expect: { nftables: reject, iptables: pass }');
  const expected = ([scenario]: ReturnType<typeof loadScenario>): unknown => scenario?.steps[0];
  expect(expected(loadScenario('x', text, nftablesTraits))).toMatchObject({ flow: { expect: { kind: 'reject' } } });
  expect(expected(loadScenario('x', text, iptablesTraits))).toMatchObject({ flow: { expect: { kind: 'pass' } } });
  expect(loadScenario('x', text, iptablesTraits)[0]?.dataplane).toBe(iptablesTraits);
});

test.each([
  ['what nftables does', '{ nftables: drop, iptables: pass }', 'drop'],
  ['what it says itself', '{ nftables: drop, iptables: pass, ebpf: reject }', 'reject'],
])('ebpf is expected to do %s', (_, said, kind) => {
  const [scenario] = loadScenario('x', good.replace('expect: reject', `expect: ${said}`), ebpfTraits);
  expect(scenario?.steps[0]).toMatchObject({ flow: { expect: { kind } } });
});

test.each([
  [nftablesTraits, { masquerade: true, isHairpinMasqueraded: true }],
  [iptablesTraits, { masquerade: true, isHairpinMasqueraded: true }],
  [ebpfTraits, { masquerade: false, isHairpinMasqueraded: false }],
] as const)('packets that are translated are masqueraded by $0.name: $1', (dataplane, expected) => {
  const said = 'expect: { forward: [10.244.1.5], masquerade: packets }';
  const [scenario] = loadScenario('x', good.replace('expect: reject', said), dataplane);
  expect(scenario?.steps[0]).toMatchObject({ flow: { expect: expected } });
});

test('a scenario of one dataplane runs nowhere with the other, and says why', () => {
  const text = good.replace('why: w', 'why: w\ndataplanes: { run: [nftables], because: b }');
  expect(loadScenario('x', text, nftablesTraits)[0]?.runs).toEqual({
    kinds: ['table', 'rendering', 'packets'],
    because: undefined,
  });
  expect(loadScenario('x', text, iptablesTraits)[0]?.runs).toEqual({ kinds: [], because: 'not for iptables: b' });
});

test('a scenario that is limited to some runs with one dataplane only runs everywhere with the other', () => {
  const limit = 'runs: { only: [packets], dataplanes: [nftables], because: b }';
  const text = good.replace('why: w', `why: w\n${limit}`);
  expect(loadScenario('x', text, nftablesTraits)[0]?.runs).toEqual({ kinds: ['packets'], because: 'b' });
  expect(loadScenario('x', text, iptablesTraits)[0]?.runs.because).toBeUndefined();
});

test('a scenario that is limited to some runs says why', () => {
  const [limited] = loadScenario('x', good.replace('why: w', 'why: w\nruns: { only: [table], because: b }'));
  expect(limited?.runs).toEqual({ kinds: ['table'], because: 'b' });
  expect(loadScenario('x', good)[0]?.runs).toEqual({ kinds: ['table', 'rendering', 'packets'], because: undefined });
});

test.each([
  ['172.18.0.11', 'fd00:172:18::11'],
  ['10.244.2.5', 'fd00:10:244:2::5'],
  ['10.96.0.10', 'fd00:10:96::10'],
  ['10.96.3.10', 'fd00:10:96::3:10'],
  ['198.51.100.7', '2001:db8:51::7'],
  ['8.8.8.8', undefined],
])('the IPv6 twin of %s is %s', (v4, v6) => {
  expect(ipv6TwinOf(v4)).toBe(v6);
});

test('the twin of a single address range is a single address range', () => {
  expect(ipv6TwinOfCidr('172.18.0.100/32')).toBe('fd00:172:18::100/128');
  expect(ipv6TwinOfCidr('0.0.0.0/0')).toBe('::/0');
});
