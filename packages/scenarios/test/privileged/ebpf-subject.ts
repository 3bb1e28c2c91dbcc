import { ebpfTraits } from '@switchyard/backend-ebpf/traits';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addressBytes, type MapFaults, openFaultyBackend } from '@switchyard/backend-ebpf/testing';
import { noopLogger, parseIp } from '@switchyard/core';
import { findCgroup2Mount } from '@switchyard/lab';
import { type KernelFaults, type KernelSubject, printedIn } from './kernel-harness.ts';

/** Mounts and cgroups are called so, with the process's id. */
const prefix = 'swy-kernel-';

/**
 * backend-ebpf over the real kernel, with programs at sockets and uplinks: all namespaces share a BPF file system of this test's,
 * and each has a folder there and a cgroup of its own. Neither has an uplink, or anybody's sockets.
 */
export async function ebpfKernel(): Promise<KernelSubject> {
  const cgroups = (await findCgroup2Mount()) ?? '';
  const bpffs = join(tmpdir(), `${prefix}${process.pid}`);
  removeRemains(cgroups);
  mkdirSync(bpffs);
  execFileSync('mount', ['-t', 'bpf', 'bpf', bpffs]);
  const folderOf = (namespace: string): string => join(bpffs, namespace);
  const cgroupOf = (namespace: string): string => join(cgroups, namespace);
  return {
    name: 'ebpf',
    dataplane: ebpfTraits,
    open: (namespace, ipFamily, faults, signal) => {
      for (const folder of [folderOf(namespace), cgroupOf(namespace)]) mkdirSync(folder, { recursive: true });
      const place = { cgroup: cgroupOf(namespace), bpffs: folderOf(namespace), netns: `/run/netns/${namespace}` };
      const kind = { northSouth: 'tc', socketLb: 'all', interfaces: [] } as const;
      const host = { ...place, ...kind, logger: noopLogger };
      return openFaultyBackend(host, ipFamily, { maps: mapFaults(faults), rules: faults }, signal);
    },
    isEmpty: (namespace) =>
      printedIn(namespace, 'nft', 'list', 'tables') === '' && !existsSync(join(folderOf(namespace), 'switchyard')),
    clear: (namespace) => {
      rmSync(join(folderOf(namespace), 'switchyard'), { recursive: true, force: true });
      printedIn(namespace, 'nft', 'flush', 'ruleset');
    },
    [Symbol.dispose]: () => {
      removeMount(bpffs);
      removeCgroups(cgroups, process.pid);
    },
  };
}

/** The same faults, as maps know them. */
function mapFaults(faults: KernelFaults): MapFaults {
  return {
    get failureRate() {
      return faults.rate;
    },
    get random() {
      return faults.random;
    },
    get refused() {
      return faults.refusedAddress === undefined ? undefined : addressBytes(parseIp(faults.refusedAddress));
    },
    afterWrite: undefined,
    calls: 0,
  };
}

/** State of killed runs. */
function removeRemains(cgroups: string): void {
  const pidOf = (name: string): number => Number(new RegExp(`^${prefix}(\\d+)(?:-\\d+)?$`).exec(name)?.[1] ?? 0);
  const isDead = (pid: number): boolean => pid > 0 && !existsSync(`/proc/${pid}`);
  for (const name of readdirSync(tmpdir())) if (isDead(pidOf(name))) removeMount(join(tmpdir(), name));
  for (const name of readdirSync(cgroups)) if (isDead(pidOf(name))) removeCgroups(cgroups, pidOf(name));
}

function removeMount(path: string): void {
  if (!existsSync(path)) return;
  execFileSync('umount', ['--lazy', path], { stdio: 'ignore' });
  rmdirSync(path);
}

function removeCgroups(cgroups: string, pid: number): void {
  for (const name of readdirSync(cgroups)) if (name.startsWith(`${prefix}${pid}-`)) rmdirSync(join(cgroups, name));
}
