import { afterAll, describe, expect, test } from 'vitest';
import {
  flow,
  lenientTraits,
  node,
  outcome,
  service,
  serviceCidr,
  slice,
  socketTraits,
  strictTraits,
  tableOf,
  tableOptions,
  verdictText,
} from '../../testing/index.ts';
import { parseIp } from '../ip/address.ts';
import { explain } from './explain.ts';
import type { DataplaneTraits } from './dataplane-traits.ts';
import { type Flow, type ReasonCode, reasonCodes } from './explain-types.ts';
import type { ForwardingTable } from './forwarding-table.ts';
import { sourceClassOf } from './source-class.ts';

const endpoints = [
  { ip: '10.244.1.5', node: 'n1' },
  { ip: '10.244.2.5', node: 'n2' },
  { ip: '10.244.2.6', node: 'n2', ready: false, serving: false },
  { ip: '10.244.2.7', node: 'n2', terminating: true },
];
const cart = {
  external: 'Local',
  ports: [{ name: 'http', port: 80, nodePort: 30080 }],
  loadBalancerIps: ['198.51.100.7'],
} as const;
const cartSlice = slice('shop/cart', { ports: [{ name: 'http', port: 8080 }], endpoints });
const table = tableOf(
  {
    services: [
      service('shop/cart', cart),
      service('shop/empty', { clusterIps: ['10.96.0.11'] }),
      service('shop/guarded', {
        clusterIps: ['10.96.0.12'],
        loadBalancerIps: ['198.51.100.8'],
        sourceRanges: ['10.0.0.0/8'],
        affinitySeconds: 600,
      }),
      service('shop/thief', { clusterIps: ['10.96.0.13'], externalIps: ['10.96.0.10', '198.51.100.7'] }),
      service('shop/remote', { clusterIps: ['10.96.0.14'], internal: 'Local', externalIps: ['203.0.113.50'] }),
      service('shop/draining', { clusterIps: ['10.96.0.15'] }),
      service('shop/zoned', { clusterIps: ['10.96.0.16'] }),
      service('shop/noded', { clusterIps: ['10.96.0.17'] }),
    ],
    slices: [
      cartSlice,
      slice('shop/guarded', { endpoints: ['10.244.3.1'] }),
      slice('shop/thief', { endpoints: ['10.244.6.6'] }),
      slice('shop/remote', { endpoints: [{ ip: '10.244.2.5', node: 'n2' }] }),
      slice('shop/draining', { endpoints: [{ ip: '10.244.2.7', terminating: true }] }),
      slice('shop/zoned', {
        endpoints: [
          { ip: '10.244.1.5', zoneHints: ['a'] },
          { ip: '10.244.2.5', zoneHints: ['b'] },
        ],
      }),
      slice('shop/noded', {
        endpoints: [
          { ip: '10.244.1.5', nodeHints: ['n1'] },
          { ip: '10.244.2.5', nodeHints: ['n2'] },
        ],
      }),
    ],
    nodes: [node('n1', { zone: 'a' })],
    serviceCidrs: [serviceCidr('kubernetes', '10.96.0.0/16')],
  },
  tableOptions({ nodePortCidrs: ['192.0.2.0/30'] }),
);
const masqueradeAll = tableOf(
  { services: [service('shop/cart')], slices: [slice('shop/cart', { endpoints })] },
  tableOptions({ masqueradeAll: true, podCidr: 'none' }),
);

const seen = new Set<ReasonCode>();
function codes(sent: Flow, of = table, traits: DataplaneTraits = strictTraits): readonly ReasonCode[] {
  const found = explain(of, sent, traits).reasons.map((reason) => reason.code);
  for (const code of found) seen.add(code);
  return found;
}

/** The order of the list is the order in which reasons are given. */
describe('reasons', () => {
  test.each<readonly [string, Flow, readonly ReasonCode[]]>([
    [
      'a Local load-balancer IP from outside',
      flow('outside', '198.51.100.7:80'),
      [
        'frontend',
        'frontendShared',
        'externalTrafficPolicy',
        'endpointNotLocal',
        'endpointNotLocal',
        'endpointNotLocal',
        'sourceKept',
      ],
    ],
    [
      'a Local NodePort from a pod',
      flow('pod', '192.0.2.1:30080', { isLocal: true }),
      ['nodePort', 'externalTrafficPolicy', 'shortCircuitPod', 'endpointNotReady', 'endpointTerminating', 'sourceKept'],
    ],
    [
      'a Local NodePort from the node',
      flow('node', '192.0.2.1:30080', { isLocal: true }),
      [
        'nodePort',
        'externalTrafficPolicy',
        'shortCircuitNode',
        'endpointNotReady',
        'endpointTerminating',
        'masqueradeNode',
      ],
    ],
    [
      'a cluster IP from one of its own endpoints',
      flow('pod', '10.96.0.10:80', { source: '10.244.1.5' }),
      [
        'frontend',
        'frontendShared',
        'internalTrafficPolicy',
        'endpointNotReady',
        'endpointTerminating',
        'sourceKept',
        'hairpin',
      ],
    ],
    [
      'a cluster IP from outside',
      flow('outside', '10.96.0.13:80'),
      ['frontend', 'internalTrafficPolicy', 'masqueradeOffCluster'],
    ],
    ['no usable endpoint', flow('pod', '10.96.0.11:80'), ['frontend', 'internalTrafficPolicy', 'noUsableEndpoints']],
    [
      'none on this node',
      flow('pod', '10.96.0.14:80'),
      ['frontend', 'internalTrafficPolicy', 'noLocalEndpoints', 'endpointNotLocal'],
    ],
    [
      'a source inside the ranges',
      flow('outside', '198.51.100.8:80', { source: '10.9.9.9' }),
      ['frontend', 'sourceAllowed', 'externalTrafficPolicy', 'masqueradeExternal', 'sessionAffinity'],
    ],
    ['a source outside the ranges', flow('outside', '198.51.100.8:80'), ['frontend', 'sourceNotAllowed']],
    [
      'only draining endpoints',
      flow('pod', '10.96.0.15:80'),
      ['frontend', 'internalTrafficPolicy', 'terminatingFallback', 'sourceKept'],
    ],
    [
      'zone hints',
      flow('pod', '10.96.0.16:80'),
      ['frontend', 'internalTrafficPolicy', 'topologySameZone', 'endpointOtherZone', 'sourceKept'],
    ],
    [
      'node hints',
      flow('pod', '10.96.0.17:80'),
      ['frontend', 'internalTrafficPolicy', 'topologySameNode', 'endpointOtherNode', 'sourceKept'],
    ],
    ['an unknown port of a cluster IP', flow('pod', '10.96.0.10:81'), ['unknownPortOfClusterIp']],
    ['the right port, but UDP', flow('pod', '10.96.0.10:80/UDP'), ['unknownPortOfClusterIp']],
    ['an unallocated address of the ServiceCIDR', flow('pod', '10.96.9.9:80'), ['unallocatedClusterIp']],
    [
      'a NodePort on an address that is not selected',
      flow('outside', '192.0.2.9:30080', { isLocal: true }),
      ['nodePortAddressNotSelected'],
    ],
    ['a NodePort on a loopback address', flow('node', '127.0.0.1:30080', { isLocal: true }), ['nodePortOnLoopback']],
    ['a NodePort number at an address that is not of this node', flow('outside', '192.0.2.1:30080'), ['notAService']],
    ['the other family', flow('pod', '[fd00:10:96::a]:80'), ['otherFamily']],
  ])('%s', (_, sent, expected) => {
    expect(codes(sent)).toEqual(expected);
  });

  test('masqueradeAll', () => {
    expect(codes(flow('pod', '10.96.0.10:80'), masqueradeAll)).toContain('masqueradeAll');
    expect(codes(flow('outside', '10.96.0.10:80'), masqueradeAll)).toContain('masqueradeAll');
  });

  test('packets of the node to an external IP without endpoints, in the iptables mode', () => {
    const empty = tableOf({ services: [service('shop/empty', { externalIps: ['203.0.113.5'] })] }, tableOptions());
    expect(codes(flow('node', '203.0.113.5:80'), empty, lenientTraits)).toEqual([
      'frontend',
      'externalTrafficPolicy',
      'noUsableEndpoints',
      'refusedOnArrivalOnly',
    ]);
  });

  test('an external IP at an address of the API server', () => {
    const asking = tableOf(
      { services: [service('shop/evil', { externalIps: ['203.0.113.5'] })] },
      tableOptions({ apiServers: [['203.0.113.5', 80]] }),
    );
    expect(codes(flow('node', '203.0.113.5:80'), asking)).toEqual(['apiServerAddress']);
  });

  test('load-balancer IPs with an ipMode that is neither VIP nor Proxy', () => {
    const routed = (ip: string, onNode: string): ForwardingTable => {
      const loadBalancerIps = [['198.51.100.1', 'Router'] as const, ['198.51.100.3', 'Later'] as const];
      const slices = [slice('shop/cart', { endpoints: [{ ip, node: onNode }] })];
      const services = [service('shop/cart', { loadBalancerIps })];
      return tableOf({ services, slices }, tableOptions({ routerIpMode: 'localOnly' }));
    };
    const [here, there] = [routed('10.244.1.5', 'n1'), routed('10.244.2.5', 'n2')];
    expect(codes(flow('outside', '198.51.100.1:80'), here)).toEqual(['frontend', 'ipModeRouter', 'sourceKept']);
    expect(codes(flow('pod', '198.51.100.1:80'), there)).toEqual(['leftToRoute', 'endpointNotLocal']);
    const odd = ['frontend', 'unknownIpMode', 'externalTrafficPolicy', 'masqueradeExternal'];
    expect(codes(flow('outside', '198.51.100.3:80'), there)).toEqual(odd);
  });

  test('what a socket sends, in the eBPF mode', () => {
    expect(codes(flow('node', '10.96.0.13:80'), table, socketTraits)).toEqual([
      'frontend',
      'internalTrafficPolicy',
      'sentBySocket',
    ]);
  });

  test('what the loopback proxy takes', () => {
    const proxied = { ...table, nodePortsOnLoopback: 'proxy' as const };
    expect(codes(flow('node', '127.0.0.1:30080', { isLocal: true }), proxied)).toContain('sentByProxy');
  });

  afterAll(() => {
    expect([...reasonCodes].filter((code) => !seen.has(code))).toEqual([]);
  });
});

test('fact 51: unknown ports of a cluster IP are rejected, unallocated cluster IPs dropped, all else passes', () => {
  expect(outcome(table, flow('pod', '10.96.0.10:81'))).toBe('reject');
  expect(outcome(table, flow('pod', '10.96.9.9:80'))).toBe('drop');
  expect(outcome(table, flow('pod', '203.0.113.99:80'))).toBe('pass');
});

test('an explanation names the Service port and the frontend', () => {
  const { service: key, frontend, reasons } = explain(table, flow('outside', '198.51.100.7:80'), strictTraits);
  expect(key).toBe('shop/cart:http/TCP');
  expect(frontend).toMatchObject({ kind: 'loadBalancerIP', address: '198.51.100.7', port: 80 });
  expect(reasons.map((reason) => reason.text)).toEqual([
    '198.51.100.7:80/TCP is the loadBalancerIP of shop/cart:http/TCP',
    'shop/thief:/TCP claims it too and does not get it',
    'a loadBalancerIP follows externalTrafficPolicy Local',
    '10.244.2.5:8080 is on n2',
    '10.244.2.6:8080 is on n2',
    '10.244.2.7:8080 is on n2',
    'the endpoint sees 203.0.113.9',
  ]);
});

test.each([
  ['10.244.9.9', false, 'pod'],
  ['10.244.1.1', true, 'pod'],
  ['192.0.2.1', true, 'node'],
  ['203.0.113.9', false, 'outside'],
] as const)('%s, an address of this node: %s, is taken for %s', (source, isNodeAddress, expected) => {
  expect(sourceClassOf(table, parseIp(source), isNodeAddress)).toBe(expected);
});

const byInterface = { ...table, podDetector: { kind: 'interface', name: 'cni0' } } as const;
const byPrefix = { ...table, podDetector: { kind: 'interfacePrefix', prefix: 'veth' } } as const;
test.each([
  ['cni0', 'cni0', byInterface, '10.244.9.9', false, 'pod'],
  ['cni0', 'cni0, with any address', byInterface, '203.0.113.9', false, 'pod'],
  ['cni0', 'cni01', byInterface, '10.244.9.9', false, 'outside'],
  ['cni0', 'eth0, though a pod of another node', byInterface, '10.244.9.9', false, 'outside'],
  ['cni0', undefined, byInterface, '10.244.1.1', true, 'node'],
  ['veth*', 'veth', byPrefix, '10.244.9.9', false, 'pod'],
  ['veth*', 'veth12ab', byPrefix, '10.244.9.9', false, 'pod'],
  ['veth*', 'eth0', byPrefix, '10.244.9.9', false, 'outside'],
  ['veth*', undefined, byPrefix, '192.0.2.1', true, 'node'],
] as const)('pods are detected by %s: a packet from %s', (_, incoming, one, source, isNodeAddress, expected) => {
  expect(sourceClassOf(one, parseIp(source), isNodeAddress, incoming?.split(',')[0])).toBe(expected);
});

test.each([
  [byInterface, 'masqueraded: this node does not detect the source as a pod (pods are detected by interface cni0)'],
  [byPrefix, 'masqueraded: this node does not detect the source as a pod (pods are detected by interface veth*)'],
] as const)('the reason of masquerading names the interface', (one, expected) => {
  const { reasons } = explain(one, flow('outside', '10.96.0.10:80'), strictTraits);
  expect(reasons.map((reason) => reason.text)).toContain(expected);
});

test('without a pod detector no source is taken for a pod', () => {
  expect(sourceClassOf(masqueradeAll, parseIp('10.244.9.9'), false)).toBe('outside');
});

describe('where the modes of kube-proxy answer differently to the same table', () => {
  const guardedAndEmpty = tableOf(
    { services: [service('shop/guarded', { loadBalancerIps: ['198.51.100.8'], sourceRanges: ['10.0.0.0/8'] })] },
    tableOptions(),
  );

  test.each([
    {
      title: 'an unknown port of a cluster IP',
      sent: flow('pod', '10.96.0.10:81'),
      of: table,
      nft: 'reject',
      ipt: 'pass',
    },
    { title: 'an unallocated cluster IP', sent: flow('pod', '10.96.9.9:80'), of: table, nft: 'drop', ipt: 'pass' },
    {
      title: 'a source outside the ranges of a Service without endpoints',
      sent: flow('outside', '198.51.100.8:80'),
      of: guardedAndEmpty,
      nft: 'drop',
      ipt: 'reject',
    },
    {
      title: 'a source outside the ranges of one with endpoints',
      sent: flow('outside', '198.51.100.8:80'),
      of: table,
      nft: 'drop',
      ipt: 'drop',
    },
    {
      title: 'what the node sends to a load-balancer IP without endpoints',
      sent: flow('node', '198.51.100.8:80', { source: '10.0.0.9' }),
      of: guardedAndEmpty,
      nft: 'reject',
      ipt: 'pass',
    },
    {
      title: 'the same where the address is its own',
      sent: flow('node', '198.51.100.8:80', { source: '10.0.0.9', isLocal: true }),
      of: guardedAndEmpty,
      nft: 'reject',
      ipt: 'reject',
    },
  ])('$title: nftables $nft, iptables $ipt', ({ sent, of, nft, ipt }) => {
    for (const traits of [strictTraits, socketTraits]) expect(explain(of, sent, traits).verdict.kind).toBe(nft);
    expect(explain(of, sent, lenientTraits).verdict.kind).toBe(ipt);
  });
});

describe('the eBPF mode masquerades nothing that a socket of this node sends', () => {
  const withPorts = (options: Parameters<typeof tableOptions>[0]) =>
    tableOf(
      {
        services: [
          service('shop/cart', {
            external: 'Local',
            loadBalancerIps: ['198.51.100.7'],
            ports: [
              { name: 'http', port: 80 },
              { name: 'sctp', port: 81, protocol: 'SCTP' },
            ],
          }),
          service('shop/guarded', {
            clusterIps: ['10.96.0.12'],
            loadBalancerIps: ['198.51.100.8'],
            sourceRanges: ['10.0.0.0/8'],
          }),
        ],
        slices: [
          slice('shop/cart', {
            ports: [
              { name: 'http', port: 8080 },
              { name: 'sctp', port: 8081, protocol: 'SCTP' },
            ],
            endpoints: [{ ip: '10.244.2.5', node: 'n2' }],
          }),
          slice('shop/guarded', { endpoints: ['10.244.3.1'] }),
        ],
      },
      tableOptions(options),
    );
  const all = withPorts({ masqueradeAll: true });
  const blind = withPorts({ podCidr: 'none' });
  const sentHere = { ...flow('outside', '198.51.100.7:80'), isSentHere: true };
  const bridged = { ...withPorts({}), podDetector: { kind: 'interface', name: 'cni0' } } as const;

  test.each([
    ['a pod to a cluster IP with masqueradeAll', all, flow('pod', '10.96.0.10:80'), '10.244.2.5'],
    ['the same of another node', all, { ...flow('pod', '10.96.0.10:80'), isSentHere: false }, '10.244.2.5 masqueraded'],
    ['the node to a Local load-balancer IP', all, flow('node', '198.51.100.7:80'), '10.244.2.5'],
    ['the outside to a cluster IP', all, flow('outside', '10.96.0.10:80'), '10.244.2.5 masqueraded'],
    ['a pod, by SCTP', all, flow('pod', '10.96.0.10:81/SCTP'), '10.244.2.5 masqueraded'],
    ['a pod to a frontend with source ranges', all, flow('pod', '198.51.100.8:80'), '10.244.3.1 masqueraded'],
    ['a pod to the cluster IP of the same Service', all, flow('pod', '10.96.0.12:80'), '10.244.3.1'],
    [
      'a pod of this node where pods are not detected',
      blind,
      { ...flow('outside', '10.96.0.10:80'), isSentHere: true },
      '10.244.2.5',
    ],
    ['its policy is that for the outside', blind, sentHere, 'drop'],
    ['a pod that is not behind the bridge is still one', bridged, sentHere, '10.244.2.5'],
  ])('%s', (_, of, sent, expected) => {
    expect(verdictText(explain(of, sent, socketTraits).verdict)).toBe(expected);
  });
});
