import { describe, expect, test } from 'vitest';
import { lbSlice } from '../testing/plan-input.ts';
import {
  labelled,
  local,
  node1,
  node2,
  plan,
  portLines,
  problemsOf,
  type RawSpec,
  specOf,
  withoutNodePort,
} from '../testing/plan-one.ts';

describe('ports without a nodePort go to endpoints', () => {
  const onBoth = ['10.244.2.7@node2', '10.244.1.5@node1'];
  test.each<
    [title: string, spec: RawSpec, endpoints: readonly string[], lines: readonly string[], routes: readonly string[]]
  >([
    [
      'the ready ones, on their own port, checked on their node, routed through it',
      {},
      [...onBoth, '10.244.2.8@node2 unready', '10.244.2.9@node2 terminating'],
      [
        'node1:10.244.1.5 on node1 10.244.1.5:8080 check 172.18.0.11:10256/healthz',
        'node2:10.244.2.7 on node2 10.244.2.7:8080 check 172.18.0.12:10256/healthz',
      ],
      ['10.244.1.0/24 via 172.18.0.11', '10.244.2.0/24 via 172.18.0.12'],
    ],
    [
      'Cluster: the serving terminating ones once none is ready anywhere',
      {},
      ['10.244.1.5@node1 terminating', '10.244.2.8@node2 unready'],
      ['node1:10.244.1.5 on node1 10.244.1.5:8080 check 172.18.0.11:10256/healthz'],
      ['10.244.1.0/24 via 172.18.0.11'],
    ],
    [
      'Local: node by node; who terminates gets nothing new while another is ready',
      local,
      ['10.244.1.5@node1 terminating', '10.244.2.7@node2', '10.244.2.8@node2 terminating'],
      [
        'node1:10.244.1.5 on node1 10.244.1.5:8080 check 172.18.0.11:32080/healthz serving',
        'node2:10.244.2.7 on node2 10.244.2.7:8080 check 172.18.0.12:32080/healthz',
      ],
      ['10.244.1.0/24 via 172.18.0.11', '10.244.2.0/24 via 172.18.0.12'],
    ],
    [
      'an address that is not of its node gets a route of its own',
      {},
      ['192.0.2.77@node1'],
      ['node1:192.0.2.77 on node1 192.0.2.77:8080 check 172.18.0.11:10256/healthz'],
      ['192.0.2.77/32 via 172.18.0.11'],
    ],
    [
      'a pod in the network of its node needs no route',
      {},
      ['172.18.0.11@node1'],
      ['node1:172.18.0.11 on node1 172.18.0.11:8080 check 172.18.0.11:10256/healthz'],
      [],
    ],
    [
      'those on nodes that are left out are left out',
      {},
      ['10.244.0.2@control-plane', '10.244.1.5@node1'],
      ['node1:10.244.1.5 on node1 10.244.1.5:8080 check 172.18.0.11:10256/healthz'],
      ['10.244.1.0/24 via 172.18.0.11'],
    ],
  ])('%s', (_, spec, endpoints, lines, routes) => {
    const one = plan(
      { spec: { ...spec, ...withoutNodePort } },
      { nodes: [labelled, node2, node1], slices: [lbSlice('default/web', endpoints)] },
    );
    expect(portLines(one)).toEqual(['172.18.255.1 80/TCP', ...lines]);
    expect(specOf(one).routes.map(({ destination, via }) => `${destination} via ${via}`)).toEqual(routes);
    expect(problemsOf(one)).toEqual([]);
  });

  test('each family to the endpoints of that family', () => {
    const one = plan(
      { spec: { ...withoutNodePort, ipFamilies: ['IPv4', 'IPv6'] } },
      { slices: [lbSlice('default/web', ['fd00:10:244:1::5@node1']), lbSlice('default/web', ['10.244.1.5@node1'])] },
    );
    expect(portLines(one)).toEqual([
      '172.18.255.1 fd00:172:18:ff::1 80/TCP',
      'node1:10.244.1.5 on node1 10.244.1.5:8080 check 172.18.0.11:10256/healthz',
      'node1:fd00:10:244:1::5 on node1 [fd00:10:244:1::5]:8080 check [fd00:172:18::11]:10256/healthz',
    ]);
    expect(specOf(one).routes).toEqual([
      { destination: '10.244.1.0/24', via: '172.18.0.11' },
      { destination: 'fd00:10:244:1::/64', via: 'fd00:172:18::11' },
    ]);
  });
  test('ports are matched by name, and ports with a nodePort stay with the nodes', () => {
    const ports = [
      { name: 'web', port: 80, protocol: 'TCP' },
      { name: 'admin', port: 81, nodePort: 30081, protocol: 'TCP' },
    ];
    const slices = [lbSlice('default/web', ['10.244.1.5@node1'], 8080, 'web')];
    expect(portLines(plan({ spec: { ports } }, { slices, nodes: [node1] }))).toEqual([
      '172.18.255.1 80/TCP',
      'node1:10.244.1.5 on node1 10.244.1.5:8080 check 172.18.0.11:10256/healthz',
      '172.18.255.1 81/TCP',
      'node1 172.18.0.11:30081 check 172.18.0.11:10256/healthz',
    ]);
  });
  test.each<[title: string, endpoints: readonly string[], problems: readonly string[]]>([
    ['none', [], ['port 80/TCP has no usable IPv4 endpoint']],
    ['none that serves', ['10.244.1.5@node1 unready'], ['port 80/TCP has no usable IPv4 endpoint']],
    [
      'one that names no node',
      ['192.0.2.7'],
      [
        'port 80/TCP has no nodePort, and its endpoints 192.0.2.7 name no node through which they could be reached; set allocateLoadBalancerNodePorts to true',
        'port 80/TCP has no usable IPv4 endpoint',
      ],
    ],
  ])('%s: told as a problem', (_, endpoints, problems) => {
    const one = plan({ spec: withoutNodePort }, { slices: [lbSlice('default/web', endpoints)] });
    expect(problemsOf(one)).toEqual(problems);
    expect(portLines(one)).toEqual(['172.18.255.1 80/TCP']);
  });
});
