import { HostError, millis, noopLogger } from '@switchyard/core';
import { type ProbeResult } from '@switchyard/core/engine';
import { expect, test } from 'vitest';
import type { EbpfHost } from './host.ts';
import { type ProbedMachine, probeMachine } from './probe.ts';
import { kernelWithout } from '../testing/kernel-without.ts';

const capabilities = { usesKernelConntrack: true, sessionAffinity: true, sourceRanges: true, minSyncPeriod: millis(0) };
const library: ProbeResult = { status: 'usable', capabilities };
const host: EbpfHost = {
  logger: noopLogger,
  cgroup: undefined,
  bpffs: '/sys/fs/bpf',
  interfaces: [],
  northSouth: 'auto',
  socketLb: 'all',
};

function machine(changes: Partial<ProbedMachine> = {}): ProbedMachine {
  return {
    probe: () => kernelWithout(),
    isBpffs: () => true,
    isCgroup2: () => true,
    isContainersOwn: () => false,
    canMount: () => false,
    otherLoadBalancers: () => [],
    findObjects: () => undefined,
    ...changes,
  };
}

test.each<[string, Partial<EbpfHost>, Partial<ProbedMachine>, ProbeResult]>([
  ['a machine with everything', {}, {}, library],
  [
    'one whose kernel has no conntrack for programs: rules do the rest',
    {},
    { probe: () => kernelWithout('conntrackNat') },
    library,
  ],
  ['one without bpffs that may mount it', {}, { isBpffs: () => false, canMount: () => true }, library],
])('%s is usable', (_, asked, found, expected) => {
  expect(probeMachine({ ...host, ...asked }, { library, wire: [] }, machine(found))).toEqual(expected);
});

const throwing = (message: string) => (): never => {
  throw new HostError('native.missing', message);
};

test.each<[string, Partial<EbpfHost>, Partial<ProbedMachine>, RegExp]>([
  [
    'the addon is not there',
    {},
    { probe: throwing('switchyard_bpf.node is missing') },
    /^switchyard_bpf\.node is missing$/,
  ],
  ['bpf is forbidden', {}, { probe: () => kernelWithout('maps') }, /CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON/],
  [
    'the kernel is too old',
    {},
    { probe: () => kernelWithout('getpeername') },
    /^the kernel lacks BPF programs at getpeername \(Linux 5\.8\)/,
  ],
  [
    'cgroup2 is not mounted',
    {},
    { probe: () => ({ ...kernelWithout(), cgroup2: undefined }) },
    /^cgroup2 is not mounted: .*--switchyard-ebpf-cgroup$/,
  ],
  [
    'what is named is no cgroup',
    { cgroup: '/tmp' },
    { isCgroup2: () => false },
    /^\/tmp is not a folder of a cgroup2 mount/,
  ],
  [
    'bpffs can neither be found nor mounted',
    {},
    { isBpffs: () => false },
    /^no bpffs is mounted at \/sys\/fs\/bpf.*CAP_SYS_ADMIN$/,
  ],
  ['another load balancer is there', {}, { otherLoadBalancers: () => ['Cilium is here'] }, /^Cilium is here$/],
  [
    'the programs were not built',
    {},
    { findObjects: throwing('socket.bpf.o is missing') },
    /^socket\.bpf\.o is missing$/,
  ],
])('unusable, and why: %s', (_, asked, found, reason) => {
  const result = probeMachine({ ...host, ...asked }, { library, wire: [] }, machine(found));
  expect(result.status === 'unusable' && result.reasons).toEqual([expect.stringMatching(reason)]);
});

test('what nftables lacks is lacking here too', () => {
  const missing: ProbeResult = { status: 'unusable', reasons: ['the program nft is not installed'] };
  expect(probeMachine(host, { library: missing, wire: [] }, machine())).toEqual(missing);
});

test('configured programs at uplinks that the kernel refuses are a reason too', () => {
  const wire = ['no conntrack: use nftables'];
  expect(probeMachine(host, { library, wire }, machine())).toEqual({ status: 'unusable', reasons: wire });
});

test('where the addon is not there, nothing is said of uplinks', () => {
  const found = machine({ probe: throwing('missing') });
  const result = probeMachine(host, { library, wire: ['no conntrack'] }, found);
  expect(result).toEqual({ status: 'unusable', reasons: ['missing'] });
});
