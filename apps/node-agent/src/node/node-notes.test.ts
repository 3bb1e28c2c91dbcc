import { ClusterState, nodeName, noopLogger, parseCidr } from '@switchyard/core';
import { node } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import type { RunConfig } from '../config/run-config.ts';
import { nodeNotes } from './start-conditions.ts';
import { OwnNode } from './own-node.ts';

const unrecognized = 'info IPv6 pods are not recognized: no pod range of this family';
const open = 'warn IPv6 NodePorts answer on all addresses of a family that no CIDR names';
const dual = ['192.0.2.1', 'fd00::1'];
const four = { kind: 'clusterCIDR', cidrs: { IPv4: parseCidr('10.244.0.0/16') } } as const;
const interfaces = { kind: 'interfaceNamePrefix', prefix: 'veth' } as const;
const primary = { primary: true, cidrs: [], loopback: [] } as const;
const some = { primary: false, cidrs: [parseCidr('192.0.2.0/24')], loopback: [] } as const;
const unset = { primary: false, cidrs: [], loopback: [] } as const;
const all = { primary: false, cidrs: ['0.0.0.0/0', '::/0'].map(parseCidr), loopback: [] } as const;

test.each<[string, readonly string[], Pick<RunConfig, 'detectLocal' | 'nodePortAddresses'>, readonly string[]]>([
  ['IPv4 throughout', ['192.0.2.1'], { detectLocal: four, nodePortAddresses: some }, []],
  ['a dual-stack Node, a range of one family', dual, { detectLocal: four, nodePortAddresses: primary }, [unrecognized]],
  ['pods told by interface', dual, { detectLocal: interfaces, nodePortAddresses: all }, []],
  ['NodePorts of one family', dual, { detectLocal: interfaces, nodePortAddresses: some }, [open]],
  ['both', dual, { detectLocal: four, nodePortAddresses: some }, [unrecognized, open]],
  [
    'NodePorts without a word, in the iptables mode',
    dual,
    { detectLocal: interfaces, nodePortAddresses: unset },
    ['info undefined nodePortAddresses is unset; NodePort connections will be accepted on all local IPs'],
  ],
  ['an unknown Node', [], { detectLocal: four, nodePortAddresses: some }, []],
])('%s', (_, addresses, settings, expected) => {
  const state = new ClusterState({ nodeName: nodeName('n1') });
  state.apply([{ kind: 'upsert', resource: 'Node', item: node('n1', { addresses }) }]);
  const config = { ...settings, nodeName: nodeName('n1'), bindAddress: undefined } as RunConfig;
  const own = new OwnNode({ config, state, logger: noopLogger });
  const notes = nodeNotes(config, own, ['IPv4', 'IPv6']);
  expect(notes.map(({ level, message, fields }) => `${level} ${String(fields['ipFamily'])} ${message}`)).toEqual(
    expected,
  );
});

test.each([
  ['ClusterCIDR', { kind: 'clusterCIDR', cidrs: {} }, 'name a range of this family in clusterCIDR (--cluster-cidr)'],
  ['NodeCIDR', { kind: 'nodeCIDR' }, undefined],
] as const)(
  'unrecognized pods in mode %s: the mode as the API names it, and what to do',
  (mode, detectLocal, advice) => {
    const state = new ClusterState({ nodeName: nodeName('n1') });
    state.apply([{ kind: 'upsert', resource: 'Node', item: node('n1', { addresses: ['192.0.2.1'] }) }]);
    const config = { detectLocal, nodePortAddresses: primary, nodeName: nodeName('n1'), bindAddress: undefined };
    const own = new OwnNode({ config, state, logger: noopLogger });
    const [note] = nodeNotes(config as unknown as RunConfig, own, ['IPv4']);
    expect(note?.fields).toMatchObject({ detectLocalMode: mode, advice });
  },
);
