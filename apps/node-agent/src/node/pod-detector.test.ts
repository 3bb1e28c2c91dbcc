import { ClusterState, nodeName, noopLogger, parseCidr, type PodDetector } from '@switchyard/core';
import { node, replaceAll } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import type { DetectLocal } from '../config/run-config.ts';
import { OwnNode } from './own-node.ts';
import { podDetectorOf } from '../node-settings.ts';

const state = new ClusterState({ nodeName: nodeName('n1') });
state.apply(replaceAll({ nodes: [node('n1', { podCidrs: ['10.244.1.0/24'] })] }));
const own = new OwnNode({ config: { nodeName: nodeName('n1'), bindAddress: undefined }, state, logger: noopLogger });
const cidrs = { IPv4: parseCidr('10.244.0.0/16') };
const none: PodDetector = { kind: 'none' };

test.each<[DetectLocal, PodDetector, PodDetector]>([
  [{ kind: 'clusterCIDR', cidrs }, { kind: 'cidr', cidr: cidrs.IPv4 }, none],
  [{ kind: 'clusterCIDR', cidrs: {} }, none, none],
  [{ kind: 'nodeCIDR' }, { kind: 'cidr', cidr: parseCidr('10.244.1.0/24') }, none],
  [
    { kind: 'bridgeInterface', name: 'cni0' },
    { kind: 'interface', name: 'cni0' },
    { kind: 'interface', name: 'cni0' },
  ],
  [
    { kind: 'interfaceNamePrefix', prefix: 'veth' },
    { kind: 'interfacePrefix', prefix: 'veth' },
    { kind: 'interfacePrefix', prefix: 'veth' },
  ],
])('%j recognizes IPv4 pods by %j and IPv6 pods by %j', (mode, four, six) => {
  expect([podDetectorOf(mode, own, 'IPv4'), podDetectorOf(mode, own, 'IPv6')]).toEqual([four, six]);
});
