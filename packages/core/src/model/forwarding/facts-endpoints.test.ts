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

// Behaviour of kube-proxy with endpoints and policies (facts 2 to 18): a row or more per
// fact. Facts 1, 13 and 14 are about reading API objects.

const vip = '198.51.100.7';
const here = { ip: '10.244.1.5', node: 'n1' };
const there = { ip: '10.244.2.5', node: 'n2' };
const alsoThere = { ip: '10.244.3.5', node: 'n3' };
const draining = { terminating: true };

/** A LoadBalancer Service with NodePort 30080 and one slice of `endpoints`. */
function clusterOf(spec: ServiceSpec, endpoints: SliceSpec['endpoints'] = [here, there]): ClusterSpec {
  return {
    services: [service('ns/svc', { loadBalancerIps: [vip], ports: [{ nodePort: 30080 }], ...spec })],
    slices: [slice('ns/svc', { endpoints })],
    nodes: [node('n1', { addresses: ['192.0.2.1'], zone: 'a' })],
  };
}

const internal: ServiceSpec = { loadBalancerIps: [], type: 'ClusterIP', ports: [{}] };
const local: ServiceSpec = { external: 'Local' };

const clusterIp = '10.96.0.10:80';
const toVip = flow('outside', `${vip}:80`);
const toNodePort = flow('outside', '192.0.2.1:30080', { isLocal: true });
const fromPod = flow('pod', clusterIp);

interface Row {
  readonly name: string;
  readonly cluster: ClusterSpec;
  readonly options?: OptionsSpec;
  readonly expect: readonly (readonly [ReturnType<typeof flow>, string])[];
}

const rows: readonly Row[] = [
  {
    name: 'fact 2: the ready condition alone counts, even of a terminating endpoint (publishNotReadyAddresses)',
    cluster: clusterOf({}, [
      { ...here, ready: true, terminating: true, serving: false },
      { ...there, ready: false },
    ]),
    expect: [[fromPod, '10.244.1.5']],
  },
  {
    name: 'fact 3: Local falls back to a terminating endpoint here while Cluster uses ready ones elsewhere',
    cluster: clusterOf(local, [{ ...here, ...draining }, there]),
    expect: [
      [toVip, '10.244.1.5'],
      [fromPod, '10.244.2.5'],
    ],
  },
  {
    name: 'fact 3: one ready endpoint anywhere ends the fallback of Cluster',
    cluster: clusterOf({}, [{ ...here, ...draining }, { ...alsoThere, ...draining }, there]),
    expect: [[fromPod, '10.244.2.5']],
  },
  {
    name: 'fact 4: the terminating fallback ignores topology hints',
    cluster: clusterOf({}, [
      { ...here, ...draining, zoneHints: ['a'], nodeHints: ['n1'] },
      { ...there, ...draining, zoneHints: ['b'], nodeHints: ['n2'] },
    ]),
    expect: [[fromPod, '10.244.1.5 10.244.2.5']],
  },
  {
    name: 'fact 5: an endpoint that terminates without serving is never used, even as the last one',
    cluster: clusterOf({}, [{ ...here, ...draining, serving: false }]),
    expect: [[fromPod, 'reject']],
  },
  {
    name: 'fact 6: a serving, terminating endpoint elsewhere turns the reject of Local into a drop',
    cluster: clusterOf(local, [{ ...there, ...draining }]),
    expect: [[toVip, 'drop']],
  },
  {
    name: 'fact 6: without the fallback the same is a reject',
    cluster: clusterOf(local, [{ ...there, ...draining }]),
    options: { terminatingFallback: 'off' },
    expect: [[toVip, 'reject']],
  },
  {
    name: 'fact 7: no endpoint anywhere is rejected under every policy',
    cluster: clusterOf({ external: 'Local', internal: 'Local' }, []),
    expect: [
      [toVip, 'reject'],
      [toNodePort, 'reject'],
      [fromPod, 'reject'],
    ],
  },
  {
    name: 'fact 7: endpoints elsewhere only: dropped under Local policies',
    cluster: clusterOf({ external: 'Local', internal: 'Local' }, [there]),
    expect: [
      [toVip, 'drop'],
      [toNodePort, 'drop'],
      [fromPod, 'drop'],
    ],
  },
  {
    name: 'fact 8: internal Local with a NodePort still serves the short circuit from all endpoints',
    cluster: clusterOf({ internal: 'Local', external: 'Local', loadBalancerIps: [] }),
    expect: [
      [fromPod, '10.244.1.5'],
      [flow('pod', '192.0.2.1:30080', { isLocal: true }), '10.244.1.5 10.244.2.5'],
    ],
  },
  {
    name: 'fact 9: an external IP makes the external policy count',
    cluster: clusterOf({ ...internal, ...local, externalIps: ['203.0.113.77'] }),
    expect: [[flow('outside', '203.0.113.77:80'), '10.244.1.5']],
  },
  {
    name: 'fact 9: a leftover VIP of a ClusterIP Service behaves as Cluster',
    cluster: clusterOf({ ...internal, ...local, loadBalancerIps: [vip] }),
    expect: [[toVip, '10.244.1.5 10.244.2.5 masqueraded']],
  },
  {
    name: 'fact 10: external Local short-circuits pods without and this node with masquerade',
    cluster: clusterOf(local),
    expect: [
      [flow('pod', `${vip}:80`), '10.244.1.5 10.244.2.5'],
      [flow('node', `${vip}:80`), '10.244.1.5 10.244.2.5 masqueraded'],
      [toVip, '10.244.1.5'],
    ],
  },
  {
    name: 'fact 10: without a pod detector a pod is outside, the node is still the node',
    cluster: clusterOf(local),
    options: { podCidr: 'none' },
    expect: [
      [flow('pod', `${vip}:80`), '10.244.1.5'],
      [flow('node', `${vip}:80`), '10.244.1.5 10.244.2.5 masqueraded'],
    ],
  },
  {
    name: 'fact 12: slices of the other family are ignored',
    cluster: {
      ...clusterOf({}),
      slices: [
        slice('ns/svc', { name: 'six', endpoints: ['fd00:10:244::5'] }),
        slice('ns/svc', { name: 'four', endpoints: [here] }),
      ],
    },
    expect: [[fromPod, '10.244.1.5']],
  },
  {
    name: 'fact 12: an address that contradicts its slice is ignored',
    cluster: { ...clusterOf({}), slices: [slice('ns/svc', { ipFamily: 'IPv4', endpoints: ['fd00:10:244::5', here] })] },
    expect: [[fromPod, '10.244.1.5']],
  },
  {
    name: 'fact 15: with an empty name of our own nothing is local',
    cluster: clusterOf(local, [{ ...here, node: '' }, there]),
    options: { nodeName: '' },
    expect: [[toVip, 'drop']],
  },
  {
    name: 'fact 16: node hints win over zone hints',
    cluster: clusterOf({}, [
      { ...here, zoneHints: ['b'], nodeHints: ['n1'] },
      { ...there, zoneHints: ['a'], nodeHints: ['n2'] },
    ]),
    expect: [[fromPod, '10.244.1.5']],
  },
  {
    name: 'fact 16: node hints that name other nodes only give way to zone hints',
    cluster: clusterOf({}, [
      { ...here, zoneHints: ['b'], nodeHints: ['n3'] },
      { ...there, zoneHints: ['a'], nodeHints: ['n2'] },
    ]),
    expect: [[fromPod, '10.244.2.5']],
  },
  {
    name: 'fact 16: one ready endpoint without a node hint disables node hints',
    cluster: clusterOf({}, [
      { ...here, nodeHints: ['n1'] },
      { ...there, nodeHints: [] },
    ]),
    expect: [[fromPod, '10.244.1.5 10.244.2.5']],
  },
  {
    name: 'fact 17: hints are obeyed on any Service, with any trafficDistribution',
    cluster: clusterOf(internal, [
      { ...here, zoneHints: ['a'] },
      { ...there, zoneHints: ['b'] },
    ]),
    expect: [[fromPod, '10.244.1.5']],
  },
  {
    name: 'fact 18: hints never restrict the Local set',
    cluster: clusterOf(local, [
      { ...here, zoneHints: ['b'] },
      { ip: '10.244.1.6', node: 'n1', zoneHints: ['a'] },
    ]),
    expect: [[toVip, '10.244.1.5 10.244.1.6']],
  },
];

test.each(rows)('$name', ({ cluster, options, expect: flows }) => {
  const table = tableOf(cluster, tableOptions(options));
  for (const [sent, expected] of flows) {
    expect(outcome(table, sent), `from ${sent.source} to ${sent.destination}`).toBe(expected);
  }
});

test.each([
  ['two slices', [[here], [{ ...here, ...draining }]]],
  ['two slices the other way round', [[{ ...here, ...draining }], [here]]],
  ['one slice', [[{ ...here, ...draining }, here]]],
] as const)('fact 11: an address named twice in %s: the entry that is not terminating speaks', (_, slices) => {
  const table = tableOf({
    ...clusterOf(local),
    slices: slices.map((endpoints, index) => slice('ns/svc', { name: `s${index}`, endpoints })),
  });
  const [port] = [...table.services.values()];
  expect(port?.knownEndpoints).toHaveLength(1);
  expect(port?.knownEndpoints[0]).toMatchObject({ ready: true, terminating: false });
});

test('fact 11: an entry that is not terminating speaks even when it is not ready and the terminating one still is', () => {
  const endpoints = [
    { ...here, ready: true, terminating: true },
    { ...here, ready: false },
  ];
  const table = tableOf({ ...clusterOf(local), slices: [slice('ns/svc', { endpoints })] });
  const [port] = [...table.services.values()];
  expect(port?.knownEndpoints).toMatchObject([{ ready: false, terminating: false }]);
});

test('fact 11: between two entries that are not terminating the choice does not depend on the order', () => {
  const entries = [
    { ...here, ready: false },
    { ...here, zoneHints: ['a'] },
    { ...here, zoneHints: ['b'] },
    { ip: here.ip, node: 'n2' },
  ];
  const winners = [entries, entries.toReversed()].map((endpoints) => {
    const table = tableOf({ ...clusterOf({}), slices: [slice('ns/svc', { endpoints })] });
    return [...table.services.values()][0]?.knownEndpoints;
  });
  expect(winners[0]).toEqual(winners[1]);
  expect(winners[0]).toMatchObject([{ ready: true, isLocal: true, zoneHints: ['a'] }]);
});
