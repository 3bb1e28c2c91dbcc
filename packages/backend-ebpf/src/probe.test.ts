import { HostError, millis, noopLogger, type ProbeResult } from '@switchyard/core';
import type { BpfAbilityName, BpfProbe } from '@switchyard/native';
import { FakeNft } from '@switchyard/backend-nftables/testing';
import { expect, test } from 'vitest';
import type { EbpfHost } from './host.ts';
import { chooseWire, type ProbedMachine, probeMachine } from './probe.ts';

const capabilities = { usesKernelConntrack: true, sessionAffinity: true, sourceRanges: true, minSyncPeriod: millis(0) };
const library: ProbeResult = { status: 'usable', capabilities };
const abilityNames: readonly BpfAbilityName[] = [
  'maps',
  'mmap',
  'batch',
  'socketHooks',
  'getpeername',
  'setRetval',
  'netnsCookie',
  'tc',
  'tcx',
  'conntrackNat',
  'socketDestroy',
];

/** What a kernel without these abilities says. */
function probeWithout(...missing: readonly BpfAbilityName[]): BpfProbe {
  const ability = (name: BpfAbilityName): BpfProbe['abilities'][BpfAbilityName] =>
    missing.includes(name) ? { status: 'unusable', reason: 'bpf failed with EPERM' } : { status: 'usable' };
  const abilities = Object.fromEntries(abilityNames.map((name) => [name, ability(name)])) as BpfProbe['abilities'];
  return { abilities, cgroup2: '/sys/fs/cgroup', bpffs: '/sys/fs/bpf' };
}

const host: EbpfHost = {
  runner: new FakeNft(),
  logger: noopLogger,
  transport: 'netlink',
  cgroup: undefined,
  bpffs: '/sys/fs/bpf',
  interfaces: [],
  northSouth: 'auto',
  socketLb: 'all',
};

function machine(changes: Partial<ProbedMachine> = {}): ProbedMachine {
  return {
    probe: () => probeWithout(),
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
    { probe: () => probeWithout('conntrackNat') },
    library,
  ],
  ['one without bpffs that may mount it', {}, { isBpffs: () => false, canMount: () => true }, library],
])('%s is usable', (_, asked, found, expected) => {
  expect(probeMachine({ ...host, ...asked }, library, machine(found))).toEqual(expected);
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
  ['bpf is forbidden', {}, { probe: () => probeWithout('maps') }, /CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON/],
  [
    'the kernel is too old',
    {},
    { probe: () => probeWithout('getpeername') },
    /^the kernel lacks BPF programs at getpeername \(Linux 5\.8\)/,
  ],
  [
    'programs at uplinks are asked for where there can be none',
    { northSouth: 'tc' },
    { probe: () => probeWithout('conntrackNat') },
    /^the kernel lacks connection tracking for BPF programs .*: use --switchyard-ebpf-north-south=auto or nftables$/,
  ],
  [
    'pods are left to rules that are not there',
    { northSouth: 'tc', socketLb: 'host' },
    {},
    /^--switchyard-ebpf-socket-lb=host leaves pods to rules/,
  ],
  [
    'cgroup2 is not mounted',
    {},
    { probe: () => ({ ...probeWithout(), cgroup2: undefined }) },
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
  const result = probeMachine({ ...host, ...asked }, library, machine(found));
  expect(result.status === 'unusable' && result.reasons).toEqual([expect.stringMatching(reason)]);
});

test('what nftables lacks is lacking here too', () => {
  const missing: ProbeResult = { status: 'unusable', reasons: ['the program nft is not installed'] };
  expect(probeMachine(host, missing, machine())).toEqual(missing);
});

test.each<[string, Partial<EbpfHost>, BpfProbe, string]>([
  ['auto where the kernel can', {}, probeWithout(), 'tc'],
  ['auto where it cannot', {}, probeWithout('conntrackNat'), 'nftables'],
  ['nftables where asked for', { northSouth: 'nftables' }, probeWithout(), 'nftables'],
  ['rules where pods need them anyway', { socketLb: 'host' }, probeWithout(), 'nftables'],
])('what comes from outside: %s', (_, asked, probe, kind) => {
  expect(chooseWire({ ...host, ...asked }, probe).kind).toBe(kind);
});
