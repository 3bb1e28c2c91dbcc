import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addressBytes, type MapFaults, openFaultyBackend } from '@switchyard/backend-ebpf/testing';
import { noopLogger, parseIp } from '@switchyard/core';
import { findMount, mountBpffs } from '@switchyard/native';
import { type KernelFaults, type KernelSubject, printedIn, runnerIn } from './kernel-harness.ts';

/** Mounts and cgroups are called so, with the process's id. */
const prefix = 'swy-kernel-';

/** Why this machine cannot run programs for tests; undefined where it can. */
export function ebpfObstacle(): string | undefined {
  const mount = findMount('cgroup2');
  if (mount === undefined) return 'no cgroup2 is mounted: eBPF programs have nothing of a test to be attached to';
  const probe = join(mount, `${prefix}${process.pid}-probe`);
  try {
    mkdirSync(probe);
    rmdirSync(probe);
    return undefined;
  } catch (error) {
    return `cgroups cannot be made below ${mount}: ${(error as Error).message}`;
  }
}

/**
 * backend-ebpf over the real kernel, with programs at sockets and uplinks: all namespaces share a BPF file system of this test's,
 * and each has a folder there and a cgroup of its own. Neither has an uplink, or anybody's sockets.
 */
export function ebpfKernel(): KernelSubject {
  const mount = findMount('cgroup2') ?? '';
  const bpffs = join(tmpdir(), `${prefix}${process.pid}`);
  removeRemains(mount);
  const folderOf = (namespace: string): string => join(bpffs, namespace);
  const cgroupOf = (namespace: string): string => join(mount, namespace);
  return {
    name: 'ebpf',
    dataplane: 'ebpf',
    atomicity: 'entry',
    open: (namespace, ipFamily, faults, signal) => {
      mountBpffs(bpffs);
      for (const folder of [folderOf(namespace), cgroupOf(namespace)]) mkdirSync(folder, { recursive: true });
      const place = { cgroup: cgroupOf(namespace), bpffs: folderOf(namespace), netns: `/run/netns/${namespace}` };
      const kind = { northSouth: 'tc', socketLb: 'all', interfaces: [], transport: 'netlink' } as const;
      const host = { ...place, ...kind, runner: runnerIn(namespace), logger: noopLogger };
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
      removeCgroups(mount, process.pid);
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

/** What runs left that were killed. */
function removeRemains(mount: string): void {
  const pidOf = (name: string): number => Number(new RegExp(`^${prefix}(\\d+)(?:-\\d+)?$`).exec(name)?.[1] ?? 0);
  const isDead = (pid: number): boolean => pid > 0 && !existsSync(`/proc/${pid}`);
  for (const name of readdirSync(tmpdir())) if (isDead(pidOf(name))) removeMount(join(tmpdir(), name));
  for (const name of readdirSync(mount)) if (isDead(pidOf(name))) removeCgroups(mount, pidOf(name));
}

function removeMount(path: string): void {
  if (!existsSync(path)) return;
  execFileSync('umount', ['--lazy', path], { stdio: 'ignore' });
  rmdirSync(path);
}

function removeCgroups(mount: string, pid: number): void {
  for (const name of readdirSync(mount)) if (name.startsWith(`${prefix}${pid}-`)) rmdirSync(join(mount, name));
}
