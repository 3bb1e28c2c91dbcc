import { readdir, readFile, readlink, rm, stat } from 'node:fs/promises';
import { HostError, millis, systemClock } from '@switchyard/core';
import { findCgroup2Mount, killCgroup, removeCgroup, tryKill } from './cgroup.ts';
import {
  checkLabName,
  isLabName,
  labCgroup,
  labDiskFolder,
  labFolder,
  labOfNamespace,
  labPrefix,
  labsDiskRoot,
  labsRoot,
  namespacesRoot,
} from './names.ts';
import { runProgram } from './run-program.ts';
import { isAlive, type LabRecord, readLabRecord } from './lab-record.ts';

/**
 * Removes lab `name` completely: processes, namespaces, mounts, cgroups, folders. Works without state of its owner and after the
 * owner was killed; a missing part is success. Does not stop the owner process: stop it first, or its API server keeps
 * running without a lab.
 */
export async function destroyLab(name: string): Promise<void> {
  checkLabName(name);
  const mount = await findCgroup2Mount();
  const cgroup = mount === undefined ? undefined : labCgroup(mount, name);
  if (cgroup !== undefined) await killCgroup(cgroup);
  await removeNamespaces(await labNamespaces(name));
  await unmountBelow(labFolder(name));
  if (cgroup !== undefined) await removeCgroup(cgroup);
  await rm(labDiskFolder(name), { recursive: true, force: true });
  await rm(labFolder(name), { recursive: true, force: true });
}

/** The namespaces of lab `name` that exist now. */
export async function labNamespaces(name: string): Promise<readonly string[]> {
  const names = await readdir(namespacesRoot).catch(() => []);
  return names.filter((namespace) => labOfNamespace(namespace) === name).sort();
}

/** Kills every process in `namespaces` and removes them, with the interfaces in them. */
export async function removeNamespaces(namespaces: readonly string[]): Promise<void> {
  if (namespaces.length === 0) return;
  await killInNamespaces(namespaces);
  // -force continues after an error, so that one missing name does not keep the others.
  const input = namespaces.map((namespace) => `netns delete ${namespace}\n`).join('');
  const result = await runProgram('ip', ['-force', '-batch', '-'], { stdin: input });
  const names = new Set(await readdir(namespacesRoot).catch(() => []));
  const left = namespaces.filter((namespace) => names.has(namespace));
  if (left.length === 0) return;
  throw new HostError('lab.namespace', `cannot remove namespaces ${left.join(', ')}: ${result.stderr.trim()}`);
}

/** The processes whose network namespace is `namespace`; empty when there is no such namespace. */
export async function pidsInNamespace(namespace: string): Promise<readonly number[]> {
  return pidsInNamespaces(await namespaceLinks([namespace]));
}

/** Returns the targets of /proc/PID/ns/net for processes in `namespaces`. */
async function namespaceLinks(namespaces: readonly string[]): Promise<ReadonlySet<string>> {
  const files = await Promise.all(namespaces.map((name) => stat(`${namespacesRoot}/${name}`).catch(() => undefined)));
  return new Set(files.flatMap((file) => (file === undefined ? [] : [`net:[${file.ino}]`])));
}

/** Kills until no process is left: a process may fork while its siblings are killed. */
async function killInNamespaces(namespaces: readonly string[]): Promise<void> {
  const links = await namespaceLinks(namespaces);
  for (let attempt = 0; attempt < 100; attempt++) {
    const pids = await pidsInNamespaces(links);
    if (pids.length === 0) return;
    for (const pid of pids) tryKill(pid);
    await systemClock.sleep(millis(10), new AbortController().signal);
  }
  const pids = await pidsInNamespaces(links);
  throw new HostError(
    'lab.processes',
    `cannot end processes ${pids.join(', ')} in ${namespaces.join(', ')} by SIGKILL`,
  );
}

/** Does the work of `ip netns pids` for all namespaces in one pass over /proc. */
async function pidsInNamespaces(links: ReadonlySet<string>): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((entry) => /^[0-9]+$/.test(entry));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const link = await readlink(`/proc/${pid}/ns/net`).catch(() => '');
      return links.has(link) ? [Number(pid)] : [];
    }),
  );
  return found.flat().filter((pid) => pid !== process.pid);
}

/** Detaches all mounts below `folder`, deepest first. */
async function unmountBelow(folder: string): Promise<void> {
  const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').map((line) => line.split(' ')[1] ?? '');
  for (const mountPoint of mounts.filter((path) => path.startsWith(`${folder}/`)).toReversed()) {
    const result = await runProgram('umount', ['--lazy', mountPoint]);
    if (result.exitCode === 0) continue;
    throw new HostError('lab.umount', `cannot unmount ${mountPoint}: ${result.stderr.trim()}`);
  }
}

/** A lab of this machine, made by any process. */
export interface LabListing {
  readonly name: string;
  /** `running`: its owner process lives. `dead`: the owner is gone and the remains wait for `destroyLab`. */
  readonly status: 'running' | 'dead';
  /** Undefined for remains without a record. */
  readonly record: LabRecord | undefined;
  /** Hosts and pods that exist now, sorted, without the switch. */
  readonly hosts: readonly string[];
}

/** All labs of this machine, by name. Finds remains by namespace, cgroup or folder, whichever is left. */
export async function listLabs(): Promise<readonly LabListing[]> {
  const mount = await findCgroup2Mount();
  const [namespaces, folders, diskFolders, cgroups] = await Promise.all(
    [namespacesRoot, labsRoot, labsDiskRoot, mount ?? '/nonexistent'].map((folder) => readdir(folder).catch(() => [])),
  );
  const names = new Set([
    ...(namespaces ?? []).flatMap((namespace) => labOfNamespace(namespace) ?? []),
    ...[...(folders ?? []), ...(diskFolders ?? [])].filter(isLabName),
    ...(cgroups ?? []).filter((name) => name.startsWith(labPrefix)).map((name) => name.slice(labPrefix.length)),
  ]);
  return Promise.all([...names].filter(isLabName).sort().map(describeLab));
}

async function describeLab(name: string): Promise<LabListing> {
  const record = await readLabRecord(name);
  const namespaces = await labNamespaces(name);
  return {
    name,
    status: record !== undefined && (await isAlive(record.owner)) ? 'running' : 'dead',
    record,
    hosts: namespaces
      .map((namespace) => namespace.slice(labPrefix.length + name.length + 1))
      .filter((host) => host !== 'switch'),
  };
}
