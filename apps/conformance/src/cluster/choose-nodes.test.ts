import type { Node } from '@switchyard/core/kubernetes';
import { describe, expect, test } from 'vitest';
import { chooseNodes, nodeObstacle } from './preflight.ts';

const ready = { type: 'Ready', status: 'True' };

function node(
  name: string,
  parts: {
    readonly spec?: Node['spec'];
    readonly labels?: Record<string, string>;
    readonly status?: Node['status'];
  } = {},
): Node {
  const addresses = [
    { type: 'Hostname', address: name },
    { type: 'ExternalIP', address: '203.0.113.9' },
    { type: 'InternalIP', address: '192.0.2.1' },
    { type: 'InternalIP', address: '2001:db8::1' },
  ];
  return {
    metadata: { name, labels: { 'kubernetes.io/os': 'linux', ...parts.labels } },
    spec: parts.spec ?? {},
    status: { conditions: [ready], addresses, ...parts.status },
  };
}

const taint = (effect: string): Node['spec'] => ({ taints: [{ key: 'dedicated', effect }] });

test.each<[string, Node, string | undefined]>([
  ['nothing against it', node('a'), undefined],
  ['Windows', node('a', { labels: { 'kubernetes.io/os': 'windows' } }), 'runs windows'],
  ['cordoned', node('a', { spec: { unschedulable: true } }), 'is cordoned'],
  ['not ready', node('a', { status: { conditions: [{ ...ready, status: 'Unknown' }] } }), 'is not Ready'],
  ['no conditions', node('a', { status: { conditions: [] } }), 'is not Ready'],
  ['a control plane', node('a', { spec: taint('NoSchedule') }), 'has the taint dedicated'],
  ['a taint that throws pods out', node('a', { spec: taint('NoExecute') }), 'has the taint dedicated'],
  ['a taint that is only a wish', node('a', { spec: taint('PreferNoSchedule') }), undefined],
  ['no address', node('a', { status: { conditions: [ready], addresses: [] } }), 'has no InternalIP'],
])('a node with %s', (_, one, expected) => {
  expect(nodeObstacle(one)).toBe(expected);
});

describe('two nodes', () => {
  test('are the first by name that can be used, with their InternalIPs and zone', () => {
    const zone = { 'topology.kubernetes.io/zone': 'z' };
    const pair = chooseNodes([
      node('n10'),
      node('n2'),
      node('n1', { spec: taint('NoSchedule') }),
      node('n3', { labels: zone }),
    ]);
    expect([pair.node1.name, pair.node2.name]).toEqual(['n2', 'n3']);
    expect(pair.node2.addresses).toEqual({ IPv4: '192.0.2.1', IPv6: '2001:db8::1' });
    expect([pair.node1.zone, pair.node2.zone]).toEqual([undefined, 'z']);
  });
  test('that are named are those, in this order', () => {
    const pair = chooseNodes([node('a'), node('b'), node('c')], ['c', 'a']);
    expect([pair.node1.name, pair.node2.name]).toEqual(['c', 'a']);
  });
  const cordoned = { spec: { unschedulable: true } };
  test.each<[string, readonly Node[], readonly [string, string] | undefined, RegExp]>([
    ['there are none', [], undefined, /of 0 there can be used none$/],
    ['one is cordoned', [node('a'), node('b', cordoned)], undefined, /of 2 there can be used a: b is cordoned$/],
    ['a name is wrong', [node('a'), node('b')], ['a', 'x'], /there is no node x; there are a, b$/],
    [
      'a named one cannot be used',
      [node('a'), node('b', cordoned)],
      ['a', 'b'],
      /node b cannot be used: it is cordoned$/,
    ],
    ['a name comes twice', [node('a')], ['a', 'a'], /--nodes names a twice/],
  ])('are refused when %s', (_, nodes, wanted, message) => {
    expect(() => chooseNodes(nodes, wanted)).toThrow(message);
  });
});
