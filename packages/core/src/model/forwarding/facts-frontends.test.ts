import { expect, test } from 'vitest';
import {
  type ClusterSpec,
  flow,
  node,
  type OptionsSpec,
  outcome,
  service,
  type ServiceSpec,
  slice,
  type SliceSpec,
  tableOf,
  tableOptions,
} from '../../testing/index.ts';
import { haveEqualSettings } from './build-table.ts';
import type { ForwardingTable } from './forwarding-table.ts';

// Behaviour of kube-proxy with addresses, NodePorts and health checks (facts 19 to 34).
// Fact 26 is about reading API objects; 28, 31 and 33, and 35 to 41, about the agent and the kernel.

const vip = '198.51.100.7';
const here = { ip: '10.244.1.5', node: 'n1' };
const there = { ip: '10.244.2.5', node: 'n2' };
const draining = { terminating: true };

/** A LoadBalancer Service with NodePort 30080 and one slice of `endpoints`. */
function clusterOf(spec: ServiceSpec, endpoints: SliceSpec['endpoints'] = [here, there]): ClusterSpec {
  return {
    services: [service('ns/svc', { loadBalancerIps: [vip], ports: [{ nodePort: 30080 }], ...spec })],
    slices: [slice('ns/svc', { endpoints })],
    nodes: [node('n1', { addresses: ['192.0.2.1'], zone: 'a' })],
  };
}

const clusterIp = '10.96.0.10:80';
const toVip = flow('outside', `${vip}:80`);
const toNodePort = flow('outside', '192.0.2.1:30080', { isLocal: true });
const fromPod = flow('pod', clusterIp);
const fromItself = flow('node', '127.0.0.1:30080', { source: '127.0.0.1', isLocal: true });

interface Row {
  readonly name: string;
  readonly cluster: ClusterSpec;
  readonly options?: OptionsSpec;
  readonly expect: readonly (readonly [ReturnType<typeof flow>, string])[];
}

const rows: readonly Row[] = [
  {
    name: 'fact 19: a range of length zero disables filtering for its family',
    cluster: clusterOf({ sourceRanges: ['10.0.0.0/8', ' 0.0.0.0/0 '] }),
    expect: [[toVip, '10.244.1.5 10.244.2.5 masqueraded']],
  },
  {
    name: 'fact 21: source ranges guard load-balancer IPs, not NodePorts, external IPs or cluster IPs',
    cluster: clusterOf({ sourceRanges: ['10.0.0.0/8'], externalIps: ['203.0.113.77'] }),
    expect: [
      [toVip, 'drop'],
      [flow('outside', `${vip}:80`, { source: '10.1.2.3' }), '10.244.1.5 10.244.2.5 masqueraded'],
      [flow('node', `${vip}:80`), 'drop'],
      [toNodePort, '10.244.1.5 10.244.2.5 masqueraded'],
      [flow('outside', '203.0.113.77:80'), '10.244.1.5 10.244.2.5 masqueraded'],
      [flow('outside', clusterIp), '10.244.1.5 10.244.2.5 masqueraded'],
    ],
  },
  {
    name: 'external IPs get nothing when the feature gate AllowServiceExternalIPs is off; a VIP of that address stays',
    cluster: clusterOf({ externalIps: ['203.0.113.77', vip] }),
    options: { externalIps: 'ignore' },
    expect: [
      [flow('outside', '203.0.113.77:80'), 'pass'],
      [toVip, '10.244.1.5 10.244.2.5 masqueraded'],
    ],
  },
  {
    name: "fact 22: if a range contains this node's address, the VIP itself may be a source",
    cluster: clusterOf({ sourceRanges: ['192.0.2.0/24'], loadBalancerIps: [vip, '198.51.100.8'] }),
    expect: [
      [flow('node', `${vip}:80`, { source: vip }), '10.244.1.5 10.244.2.5 masqueraded'],
      [flow('node', `${vip}:80`, { source: '198.51.100.8' }), '10.244.1.5 10.244.2.5 masqueraded'],
      [flow('outside', `${vip}:80`, { source: '198.51.100.9' }), 'drop'],
    ],
  },
  {
    name: 'fact 22: if no range contains it, the VIP is a source like any other',
    cluster: clusterOf({ sourceRanges: ['192.0.2.128/25'] }),
    expect: [[flow('node', `${vip}:80`, { source: vip }), 'drop']],
  },
  {
    name: 'fact 23: with source ranges and no endpoints, sources outside the ranges are dropped, others rejected',
    cluster: clusterOf({ sourceRanges: ['10.0.0.0/8'] }, []),
    expect: [
      [toVip, 'drop'],
      [flow('outside', `${vip}:80`, { source: '10.1.2.3' }), 'reject'],
    ],
  },
  {
    name: 'the mode Proxy leaves an ingress address alone; an unknown mode captures it, as VIP does (kube-proxy: VIP alone)',
    cluster: clusterOf({
      loadBalancerIps: [
        ['198.51.100.1', 'VIP'],
        ['198.51.100.2', 'Proxy'],
        ['198.51.100.3', 'vip'],
        ['198.51.100.4', 'Whatever'],
      ],
    }),
    expect: [
      [flow('outside', '198.51.100.1:80'), '10.244.1.5 10.244.2.5 masqueraded'],
      [flow('outside', '198.51.100.2:80'), 'pass'],
      [flow('outside', '198.51.100.3:80'), '10.244.1.5 10.244.2.5 masqueraded'],
      [flow('outside', '198.51.100.4:80'), '10.244.1.5 10.244.2.5 masqueraded'],
    ],
  },
  {
    name: 'fact 25: a Service without a cluster IP of the family does not exist in it',
    cluster: clusterOf({ clusterIps: ['fd00:10:96::a'] }),
    expect: [
      [toVip, 'pass'],
      [toNodePort, 'pass'],
    ],
  },
  {
    name: 'fact 29: a list of NodePort addresses of the other family leaves all of this family open',
    cluster: clusterOf({}),
    options: { nodePortCidrs: ['2001:db8::/64'] },
    expect: [[toNodePort, '10.244.1.5 10.244.2.5 masqueraded']],
  },
  {
    name: 'fact 29: a list of this family opens only what it names',
    cluster: clusterOf({}),
    options: { nodePortCidrs: ['192.0.2.0/30'] },
    expect: [
      [toNodePort, '10.244.1.5 10.244.2.5 masqueraded'],
      [flow('outside', '192.0.2.4:30080', { isLocal: true }), 'pass'],
    ],
  },
  {
    name: 'fact 30: NodePorts do not answer on loopback addresses, unless configured',
    cluster: clusterOf({}),
    options: { nodePortCidrs: ['0.0.0.0/0', '127.0.0.0/8'] },
    expect: [[fromItself, 'pass']],
  },
  {
    name: 'fact 30: configured, they do, masqueraded as all that the node itself sends',
    cluster: clusterOf({}),
    options: { localhostNodePorts: true },
    expect: [
      [fromItself, '10.244.1.5 10.244.2.5 masqueraded'],
      [toNodePort, '10.244.1.5 10.244.2.5 masqueraded'],
    ],
  },
  {
    name: 'fact 30: configured, with policy Local too, by the short circuit',
    cluster: clusterOf({ external: 'Local' }, [there]),
    options: { localhostNodePorts: true, nodePortCidrs: ['192.0.2.0/24', '127.0.0.1/32'] },
    expect: [
      [fromItself, '10.244.2.5 masqueraded'],
      [flow('node', '127.0.0.2:30080', { source: '127.0.0.1', isLocal: true }), 'pass'],
    ],
  },
  {
    name: 'fact 30: configured, but the NodePort addresses do not include loopback',
    cluster: clusterOf({}),
    options: { localhostNodePorts: true, nodePortCidrs: ['192.0.2.0/24'] },
    expect: [
      [fromItself, 'pass'],
      [toNodePort, '10.244.1.5 10.244.2.5 masqueraded'],
    ],
  },
  {
    name: 'fact 32: a VIP that is also a local address beats a NodePort of the same number',
    cluster: {
      ...clusterOf({ ports: [{ port: 30080 }], loadBalancerIps: ['192.0.2.1'] }),
      services: [
        service('ns/svc', { ports: [{ port: 30080 }], loadBalancerIps: ['192.0.2.1'] }),
        service('ns/a-node-port', { clusterIps: ['10.96.0.11'], ports: [{ nodePort: 30080 }] }),
      ],
    },
    expect: [[toNodePort, '10.244.1.5 10.244.2.5 masqueraded']],
  },
];

test.each([
  ['wanted in IPv4', { localhostNodePorts: true }, 'kernel'],
  ['not wanted', {}, 'none'],
  ['wanted in IPv6', { ipFamily: 'IPv6', localhostNodePorts: true }, 'none'],
  ['wanted, with a list without loopback', { localhostNodePorts: true, nodePortCidrs: ['192.0.2.0/24'] }, 'none'],
  ['wanted, with a list of the other family', { localhostNodePorts: true, nodePortCidrs: ['2001:db8::/64'] }, 'kernel'],
  ['wanted, with no NodePort addresses at all', { localhostNodePorts: true, nodePortCidrs: [] }, 'none'],
  ['a proxy in IPv6', { ipFamily: 'IPv6', localhostNodePorts: 'proxy' }, 'proxy'],
  [
    'a proxy in IPv4, where loopback is listed',
    { localhostNodePorts: 'proxy', nodePortCidrs: ['127.0.0.1/32'] },
    'proxy',
  ],
  ['a proxy, with a list without loopback', { localhostNodePorts: 'proxy', nodePortCidrs: ['192.0.2.0/24'] }, 'none'],
] as const)('NodePorts on loopback, %s: %o gives %s', (_, options, expected) => {
  expect(tableOf(clusterOf({}), tableOptions(options)).nodePortsOnLoopback).toBe(expected);
});

test('switching NodePorts on loopback on changes the settings of a table, and nothing else', () => {
  const [off, on] = [false, true].map((localhostNodePorts) =>
    tableOf(clusterOf({}), tableOptions({ localhostNodePorts })),
  ) as [ForwardingTable, ForwardingTable];
  expect(haveEqualSettings(off, on)).toBe(false);
  expect({ ...on, nodePortsOnLoopback: 'none' }).toEqual(off);
});

test.each(rows)('$name', ({ cluster, options, expect: flows }) => {
  const table = tableOf(cluster, tableOptions(options));
  for (const [sent, expected] of flows) {
    expect(outcome(table, sent), `from ${sent.source} to ${sent.destination}`).toBe(expected);
  }
});

const dualStack: ClusterSpec = {
  services: [
    service('ns/svc', {
      clusterIps: ['10.96.0.10', 'fd00:10:96::a'],
      loadBalancerIps: [vip, '2001:db8:f::7'],
      sourceRanges: ['10.0.0.0/8'],
    }),
  ],
  slices: [slice('ns/svc', { endpoints: [here] }), slice('ns/svc', { name: 'six', ipFamily: 'IPv6', endpoints: [] })],
};

function inFamily(ipFamily: 'IPv4' | 'IPv6', cluster: ClusterSpec): ForwardingTable {
  return tableOf(cluster, tableOptions({ ipFamily }));
}

test('fact 20: with IPv4 ranges only, the IPv6 load-balancer IP is unfiltered', () => {
  const endpoints = ['fd00:10:244::5'];
  const table = inFamily('IPv6', { ...dualStack, slices: [slice('ns/svc', { endpoints })] });
  expect(outcome(table, flow('outside', '[2001:db8:f::7]:80'))).toBe('fd00:10:244::5 masqueraded');
  expect(outcome(inFamily('IPv4', dualStack), toVip)).toBe('drop');
});

test('fact 27: IPv6 is rejected while IPv4 serves', () => {
  expect(outcome(inFamily('IPv4', dualStack), fromPod)).toBe('10.244.1.5');
  expect(outcome(inFamily('IPv6', dualStack), flow('pod', '[fd00:10:96::a]:80'))).toBe('reject');
});

test('fact 30: ::1 never answers', () => {
  const table = inFamily('IPv6', {
    services: [service('ns/svc', { clusterIps: ['fd00:10:96::a'], ports: [{ nodePort: 30080 }] })],
    slices: [slice('ns/svc', { endpoints: ['fd00:10:244::5'] })],
  });
  expect(outcome(table, flow('node', '[::1]:30080', { isLocal: true }))).toBe('pass');
  expect(outcome(table, flow('node', '[2001:db8::1]:30080', { isLocal: true }))).toBe('fd00:10:244::5 masqueraded');
});

test.each([
  ['distinct addresses over all ports, not endpoints', [{ ...here }, { ip: '10.244.1.6', node: 'n1' }], 2],
  ['no endpoint of another node', [here, there], 1],
  ['no endpoint that is not ready', [{ ...here, ready: false }], 0],
  ['no serving, terminating endpoint, though it carries traffic', [{ ...here, ...draining }], 0],
  ['a terminating endpoint that is published as ready', [{ ...here, ready: true, ...draining }], 1],
] as const)('fact 34: the health check counts %s', (_, endpoints, count) => {
  const table = tableOf({
    services: [
      service('ns/svc', {
        external: 'Local',
        healthCheckNodePort: 32000,
        ports: [{ name: 'a' }, { name: 'b', port: 81 }],
      }),
    ],
    slices: [
      slice('ns/svc', { name: 'a', ports: [{ name: 'a' }, { name: 'b', port: 8081 }], endpoints }),
      slice('ns/svc', { name: 'b', ports: [{ name: 'a', port: 9090 }], endpoints }),
    ],
  });
  expect([...table.healthChecks.values()]).toEqual([{ service: 'ns/svc', port: 32000, localReadyEndpoints: count }]);
});
