import { describe, expect, test } from 'vitest';
import { flow, outcome, service, slice, tableOf, tableOptions } from '../../testing/index.ts';
import { sourceClassOf } from './source-class.ts';

// Three Services that differ in their policies only, each with one local and one remote endpoint, and
// every way to reach them from every place: the flow table of kube-proxy's masquerade tests.
const here = '10.244.1.1';
const there = '10.244.2.1';
const names = ['plain', 'external-local', 'internal-local'] as const;
const cluster = {
  services: [
    service('ns/plain', { clusterIps: ['10.96.0.1'], ports: [{ nodePort: 30001 }], loadBalancerIps: ['198.51.100.1'] }),
    service('ns/external-local', {
      clusterIps: ['10.96.0.2'],
      ports: [{ nodePort: 30002 }],
      loadBalancerIps: ['198.51.100.2'],
      external: 'Local',
    }),
    service('ns/internal-local', {
      clusterIps: ['10.96.0.3'],
      ports: [{ nodePort: 30003 }],
      loadBalancerIps: ['198.51.100.3'],
      internal: 'Local',
    }),
  ],
  slices: names.map((name) =>
    slice(`ns/${name}`, {
      endpoints: [
        { ip: here, node: 'n1' },
        { ip: there, node: 'n2' },
      ],
    }),
  ),
};

const configurations = {
  normal: tableOptions(),
  'no pod detector': tableOptions({ podCidr: 'none' }),
  masqueradeAll: tableOptions({ masqueradeAll: true }),
  'masqueradeAll, no pod detector': tableOptions({ masqueradeAll: true, podCidr: 'none' }),
};

const targets = {
  'cluster IP': (index: number) => ({ to: `10.96.0.${index + 1}:80`, isLocal: false }),
  NodePort: (index: number) => ({ to: `192.0.2.1:${30001 + index}`, isLocal: true }),
  'load-balancer IP': (index: number) => ({ to: `198.51.100.${index + 1}:80`, isLocal: false }),
};

const both = `${here} ${there}`;
const masq = `${both} masqueraded`;
const hereMasq = `${here} masqueraded`;
/** Columns: normal, no pod detector, masqueradeAll, masqueradeAll without pod detector. */
const rows = [
  ['plain', 'pod', 'cluster IP', both, both, masq, masq],
  ['plain', 'node', 'cluster IP', masq, both, masq, masq],
  ['plain', 'outside', 'cluster IP', masq, both, masq, masq],
  ['plain', 'pod', 'NodePort', masq, masq, masq, masq],
  ['plain', 'node', 'NodePort', masq, masq, masq, masq],
  ['plain', 'outside', 'NodePort', masq, masq, masq, masq],
  ['plain', 'pod', 'load-balancer IP', masq, masq, masq, masq],
  ['plain', 'node', 'load-balancer IP', masq, masq, masq, masq],
  ['plain', 'outside', 'load-balancer IP', masq, masq, masq, masq],
  ['external-local', 'pod', 'cluster IP', both, both, masq, masq],
  ['external-local', 'node', 'cluster IP', masq, both, masq, masq],
  ['external-local', 'outside', 'cluster IP', masq, both, masq, masq],
  ['external-local', 'pod', 'NodePort', both, here, both, here],
  ['external-local', 'node', 'NodePort', masq, masq, masq, masq],
  ['external-local', 'outside', 'NodePort', here, here, here, here],
  ['external-local', 'pod', 'load-balancer IP', both, here, both, here],
  ['external-local', 'node', 'load-balancer IP', masq, masq, masq, masq],
  ['external-local', 'outside', 'load-balancer IP', here, here, here, here],
  ['internal-local', 'pod', 'cluster IP', here, here, hereMasq, hereMasq],
  ['internal-local', 'node', 'cluster IP', hereMasq, here, hereMasq, hereMasq],
  ['internal-local', 'outside', 'cluster IP', hereMasq, here, hereMasq, hereMasq],
  ['internal-local', 'pod', 'NodePort', masq, masq, masq, masq],
  ['internal-local', 'node', 'NodePort', masq, masq, masq, masq],
  ['internal-local', 'outside', 'NodePort', masq, masq, masq, masq],
  ['internal-local', 'pod', 'load-balancer IP', masq, masq, masq, masq],
  ['internal-local', 'node', 'load-balancer IP', masq, masq, masq, masq],
  ['internal-local', 'outside', 'load-balancer IP', masq, masq, masq, masq],
] as const;

describe.each(Object.entries(configurations))('%s:', (name, options) => {
  const table = tableOf(cluster, options);
  const column = 3 + Object.keys(configurations).indexOf(name);

  test.each(rows)('%s, from %s to its %s', (...row) => {
    const [serviceName, from, target] = row;
    const { to, isLocal } = targets[target](names.indexOf(serviceName));
    const sent = flow(from, to, { isLocal });
    expect(outcome(table, sent)).toBe(row[column]);
    // Detection of this source in the kernel leads to the same answer.
    const seen = sourceClassOf(table, sent.source, from === 'node');
    expect(outcome(table, { ...sent, from: seen })).toBe(row[column]);
  });
});
