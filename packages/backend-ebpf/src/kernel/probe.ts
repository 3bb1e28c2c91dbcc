import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BackendCapabilities, ProbeResult } from '@switchyard/core/engine';
import { HostError, messageOf, millis } from '@switchyard/core';
import { type BpfAbilityName, type BpfProbe, findMount, isBpffs, isCgroup2, probeBpf } from '@switchyard/native';
import type { EbpfHost } from './host.ts';
import { findOtherPrograms, ourPrograms, refusalText } from './programs/other-load-balancers.ts';
import { objectFile } from './programs/object-files.ts';

/** The machine as a probe uses it; tests have their own. */
export interface ProbedMachine {
  /** Throws `NativeMissingError`. */
  probe(): BpfProbe;
  isBpffs(path: string): boolean;
  isCgroup2(path: string): boolean;
  /** Whether this root of a cgroup2 mount is only that of this process's container. */
  isContainersOwn(root: string): boolean;
  /** Whether this process may mount file systems. */
  canMount(): boolean;
  /** Descriptions of other load balancers at the sockets below this cgroup. */
  otherLoadBalancers(cgroup: string, bpffs: string): readonly string[];
  /** Throws `HostError` if the compiled programs are missing. */
  findObjects(): void;
}

/** Required abilities, with their requirements for operators. */
const needs: readonly Need[] = [
  ['mmap', 'memory-mapped BPF arrays (Linux 5.5)'],
  ['socketHooks', 'BPF programs at sockets (Linux 5.7 with CONFIG_CGROUP_BPF)'],
  ['getpeername', 'BPF programs at getpeername (Linux 5.8)'],
  ['netnsCookie', 'cookies of network namespaces (Linux 5.14)'],
];

export interface ProbedParts {
  readonly library: ProbeResult;
  readonly wire: readonly string[];
}

/** Whether this machine can run the backend; tries each ability. */
export function probeMachine(
  host: EbpfHost,
  { library, wire }: ProbedParts,
  machine: ProbedMachine = linux,
): ProbeResult {
  const reasons = [...faultsOf(host, wire, machine), ...(library.status === 'usable' ? [] : library.reasons)];
  if (reasons.length > 0 || library.status === 'unusable') return { status: 'unusable', reasons };
  return { status: 'usable', capabilities: capabilitiesOf(library.capabilities) };
}

export function capabilitiesOf(library: BackendCapabilities): BackendCapabilities {
  return { ...library, usesKernelConntrack: true, minSyncPeriod: millis(0) };
}

function faultsOf(host: EbpfHost, wire: readonly string[], machine: ProbedMachine): readonly string[] {
  let probe: BpfProbe;
  try {
    probe = machine.probe();
  } catch (error) {
    if (error instanceof HostError) return [error.message];
    throw error;
  }
  const { maps } = probe.abilities;
  if (maps.status === 'unusable') {
    const who =
      'this process may not use BPF: run it as root, or with CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN stands for the last two)';
    return [`${who}; the kernel said: ${maps.reason}`];
  }
  return [...missingAbilities(needs, probe), ...wire, ...placeFaults(host, machine, probe), ...objectFaults(machine)];
}

function placeFaults(
  { cgroup = undefined, bpffs }: EbpfHost,
  machine: ProbedMachine,
  probe: BpfProbe,
): readonly string[] {
  const faults: string[] = [];
  const folder = cgroup ?? probe.cgroup2;
  if (folder === undefined) {
    faults.push(
      "cgroup2 is not mounted: mount it, in a container the host's /sys/fs/cgroup, or name it with --switchyard-ebpf-cgroup",
    );
  } else if (cgroup === undefined && machine.isContainersOwn(folder)) {
    faults.push(
      `${folder} shows this container alone: mount the host's /sys/fs/cgroup and name it with --switchyard-ebpf-cgroup`,
    );
  } else if (machine.isCgroup2(folder)) faults.push(...machine.otherLoadBalancers(folder, bpffs));
  else faults.push(`${folder} is not a folder of a cgroup2 mount: name one with --switchyard-ebpf-cgroup`);
  if (!machine.isBpffs(bpffs) && !machine.canMount()) {
    faults.push(
      `no bpffs is mounted at ${bpffs}, and this process may not mount one: mount the host's /sys/fs/bpf there, or add CAP_SYS_ADMIN`,
    );
  }
  return faults;
}

function objectFaults(machine: ProbedMachine): readonly string[] {
  try {
    machine.findObjects();
    return [];
  } catch (error) {
    return [messageOf(error)];
  }
}

/** CAP_SYS_ADMIN. */
const mountCapability = 21n;

const linux: ProbedMachine = {
  probe: probeBpf,
  isBpffs,
  isCgroup2,
  isContainersOwn: (root) =>
    // The root of the machine's cgroups has no file cgroup.type. Inside a cgroup namespace another cgroup may appear as the root.
    existsSync(join(root, 'cgroup.type')) && /^0::\/$/m.test(readFileSync('/proc/self/cgroup', 'utf8')),
  canMount: () => {
    const [, bits = '0'] = /^CapEff:\s*([0-9a-f]+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    return ((BigInt(`0x${bits}`) >> mountCapability) & 1n) === 1n;
  },
  otherLoadBalancers: (cgroup, bpffs) => {
    const ours = ourPrograms(bpffs);
    const others = findOtherPrograms({ cgroup, isOurs: (id) => ours.has(id) }, { isDeep: true });
    const owned = others.filter(({ owner }) => owner !== undefined);
    return ours.size > 0 ? [] : [...new Map(owned.map((one) => [one.owner, refusalText(one)])).values()];
  },
  findObjects: () => {
    objectFile('socket');
    objectFile('wire');
  },
};

/** Folder of cgroup2 whose sockets are served. Throws `HostError`. */
export function cgroupOf({ cgroup }: Pick<EbpfHost, 'cgroup'>): string {
  const folder = cgroup ?? findMount('cgroup2');
  if (folder !== undefined && isCgroup2(folder)) return folder;
  const what = folder === undefined ? 'cgroup2 is not mounted' : `${folder} is not a folder of a cgroup2 mount`;
  throw new HostError('ebpf.cgroup', `cannot attach programs to sockets: ${what}; see --switchyard-ebpf-cgroup`);
}

export type Need = readonly [ability: BpfAbilityName, text: string];

/** Descriptions of the abilities that the kernel lacks, with its errors. */
export function missingAbilities(needs: readonly Need[], { abilities }: BpfProbe): readonly string[] {
  return needs.flatMap(([name, text]) => {
    const ability = abilities[name];
    return ability.status === 'usable' ? [] : [`the kernel lacks ${text} (${ability.reason})`];
  });
}
