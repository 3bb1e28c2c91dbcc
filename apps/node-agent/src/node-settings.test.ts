import { ClusterState, nodeName, noopLogger, parseCidr } from '@switchyard/core';
import { node } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import type { NodePortAddresses, RunConfig } from './config/run-config.ts';
import { OwnNode } from './node/own-node.ts';
import { tableOptionsOf } from './node-settings.ts';

const [everywhere4, everywhere6] = ['0.0.0.0/0', '::/0'];
const [loopback4, loopback6] = ['127.0.0.0/8', '::1/128'];

const listed = (primary: boolean, ...cidrs: string[]): NodePortAddresses => ({
  primary,
  cidrs: cidrs.map(parseCidr),
  loopback: [],
});

test.each<[string, NodePortAddresses, readonly string[], readonly string[]]>([
  ['unset in the iptables mode', listed(false), [everywhere4], [everywhere6]],
  ['primary', listed(true), ['192.0.2.1/32'], ['fd00::1/128']],
  ['CIDRs of one family leave the other open', listed(false, '198.51.100.0/24'), ['198.51.100.0/24'], [everywhere6]],
  [
    'primary with CIDRs of one family',
    listed(true, '198.51.100.0/24'),
    ['192.0.2.1/32', '198.51.100.0/24'],
    ['fd00::1/128'],
  ],
  ['primary,localhost', listed(true, loopback4, loopback6), ['192.0.2.1/32', loopback4], ['fd00::1/128', loopback6]],
])('NodePort addresses: %s', (_, nodePortAddresses, four, six) => {
  const state = new ClusterState({ nodeName: nodeName('n1') });
  state.apply([{ kind: 'upsert', resource: 'Node', item: node('n1', { addresses: ['192.0.2.1', 'fd00::1'] }) }]);
  const config = {
    mode: 'iptables',
    iptables: { localhostNodePorts: true },
    nodePortAddresses,
    nodeName: nodeName('n1'),
    bindAddress: undefined,
    featureGates: new Map(),
    detectLocal: { kind: 'interfaceNamePrefix', prefix: 'veth' },
  } as unknown as RunConfig;
  const own = new OwnNode({ config, state, logger: noopLogger });
  expect(tableOptionsOf(config, own, 'IPv4').nodePortCidrs).toEqual(four);
  expect(tableOptionsOf(config, own, 'IPv6').nodePortCidrs).toEqual(six);
});

test('a Node without an address of a family answers there on the listed ranges alone', () => {
  const state = new ClusterState({ nodeName: nodeName('n1') });
  const config = {
    mode: 'iptables',
    iptables: { localhostNodePorts: true },
    nodePortAddresses: listed(true, loopback4),
    nodeName: nodeName('n1'),
    bindAddress: undefined,
    featureGates: new Map(),
    detectLocal: { kind: 'interfaceNamePrefix', prefix: 'veth' },
  } as unknown as RunConfig;
  const own = new OwnNode({ config, state, logger: noopLogger });
  expect(tableOptionsOf(config, own, 'IPv4').nodePortCidrs).toEqual([loopback4]);
  expect(tableOptionsOf(config, own, 'IPv6').nodePortCidrs).toEqual([]);
});

const gate = 'KubeProxyNFTablesLocalhostNodePorts';

test.each<[string, Partial<RunConfig>, string, string]>([
  ['nftables, localhost', {}, 'proxy', 'proxy'],
  ['ebpf, localhost', { mode: 'ebpf' }, 'proxy', 'proxy'],
  ['one family', { nodePortAddresses: { ...listed(true, '127.0.0.1/32'), loopback: ['IPv4'] } }, 'proxy', 'none'],
  ['all', { nodePortAddresses: listed(false, everywhere4, everywhere6) }, 'none', 'none'],
  ['the gate is off', { featureGates: new Map([[gate, false]]) }, 'none', 'none'],
  ['the iptables mode', { mode: 'iptables' }, 'kernel', 'none'],
])('NodePorts on loopback: %s', (_, changes, four, six) => {
  const config = {
    mode: 'nftables',
    nodePortAddresses: { ...listed(true, loopback4, loopback6), loopback: ['IPv4', 'IPv6'] },
    iptables: { localhostNodePorts: true },
    nodeName: nodeName('n1'),
    featureGates: new Map([[gate, true]]),
    detectLocal: { kind: 'interfaceNamePrefix', prefix: 'veth' },
    ...changes,
  } as unknown as RunConfig;
  const own = new OwnNode({ config, state: new ClusterState({ nodeName: nodeName('n1') }), logger: noopLogger });
  expect(tableOptionsOf(config, own, 'IPv4').nodePortsOnLoopback).toBe(four);
  expect(tableOptionsOf(config, own, 'IPv6').nodePortsOnLoopback).toBe(six);
});
