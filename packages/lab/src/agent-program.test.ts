import { nodeName } from '@switchyard/core';
import { expect, test } from 'vitest';
import { proxyModeFlags } from './agent-program.ts';
import type { LabNode } from './lab.ts';

const node: LabNode = {
  name: 'node1',
  namespace: 'swy-x-node1',
  addresses: {},
  nodeName: nodeName('node1'),
  zone: 'zone-a',
  podCidrs: {},
  cgroupPath: '/cgroup/swy-x/node1',
  bpffsPath: '/run/switchyard/x/bpf/node1',
  run: () => Promise.reject(new Error('not here')),
  spawn: () => {
    throw new Error('not here');
  },
};

test('an agent in another mode finds what the eBPF mode left on its node, not on the machine', () => {
  expect(proxyModeFlags(node, 'nftables')).toEqual([
    '--proxy-mode=nftables',
    '--switchyard-ebpf-bpffs=/run/switchyard/x/bpf/node1',
  ]);
  expect(proxyModeFlags({ ...node, bpffsPath: undefined }, 'iptables')).toEqual(['--proxy-mode=iptables']);
});

test('an agent in the eBPF mode is led to the cgroup and the file system of its node', () => {
  expect(proxyModeFlags(node, 'ebpf')).toEqual([
    '--proxy-mode=ebpf',
    '--switchyard-ebpf-cgroup=/cgroup/swy-x/node1',
    '--switchyard-ebpf-bpffs=/run/switchyard/x/bpf/node1',
  ]);
});

test.each([
  { lacks: 'cgroup v2 directory', given: { cgroupPath: undefined } },
  { lacks: 'BPF file system', given: { bpffsPath: undefined } },
])("and is never let at the machine's own, where its node has no $lacks", ({ lacks, given }) => {
  expect(() => proxyModeFlags({ ...node, ...given }, 'ebpf')).toThrow(`could not give it a ${lacks}`);
});
