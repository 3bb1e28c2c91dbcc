import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { messageOf, millis, systemClock } from '@switchyard/core';
import { labPrefix } from './names.ts';

/** Returns the mount point of cgroup v2, or undefined. Hybrid machines mount it beside the v1 controllers. */
export async function findCgroup2Mount(): Promise<string | undefined> {
  return parseCgroup2Mount(await readFile('/proc/self/mounts', 'utf8'));
}

/** The mount point of the first cgroup2 entry of a `/proc/self/mounts` text. */
export function parseCgroup2Mount(mounts: string): string | undefined {
  for (const line of mounts.split('\n')) {
    const [, mountPoint, type] = line.split(' ');
    if (type === 'cgroup2' && mountPoint !== undefined) return mountPoint.replaceAll('\\040', ' ');
  }
  return undefined;
}

/** Returns why this process cannot create cgroups, which eBPF programs need; undefined if it can. */
export async function findCgroupObstacle(): Promise<string | undefined> {
  const mount = await findCgroup2Mount();
  if (mount === undefined) return 'no cgroup v2 is mounted';
  const probe = `${mount}/${labPrefix}probe-${process.pid}`;
  const problem = await tryMakeCgroup(probe);
  if (problem !== undefined) return `cgroups cannot be made below ${mount} (${problem})`;
  await removeCgroup(probe);
  return undefined;
}

/** Creates `folder` and its parents. Returns why it cannot, or undefined. */
export async function tryMakeCgroup(folder: string): Promise<string | undefined> {
  try {
    await mkdir(folder, { recursive: true });
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** Kills all processes in the cgroup and below. `cgroup.kill` needs Linux 5.14; without it, pid by pid. */
export async function killCgroup(folder: string): Promise<void> {
  try {
    await writeFile(`${folder}/cgroup.kill`, '1', { flag: 'r+' });
    return;
  } catch (error) {
    if (!isGone(error)) throw error;
  }
  for (const group of await cgroupsBelow(folder)) {
    const pids = await readFile(`${group}/cgroup.procs`, 'utf8').catch(() => '');
    for (const pid of pids.split('\n').filter(Boolean).map(Number)) tryKill(pid);
  }
}

/** Removes an empty cgroup and those below. Processes that were just killed may take a moment to leave. */
export async function removeCgroup(folder: string): Promise<void> {
  const groups = (await cgroupsBelow(folder)).toReversed();
  for (const group of groups) {
    for (let attempt = 0; ; attempt++) {
      try {
        await rmdir(group);
        break;
      } catch (error) {
        if (isGone(error)) break;
        if (attempt === 100) throw error;
        await systemClock.sleep(millis(20), new AbortController().signal);
      }
    }
  }
}

/** Sends SIGKILL to one process. A missing process is success. */
export function tryKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** `folder` and all cgroups below it, parents first; empty when it does not exist. */
async function cgroupsBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => undefined);
  if (entries === undefined) return [];
  const below = entries.filter((entry) => entry.isDirectory()).map((entry) => cgroupsBelow(`${folder}/${entry.name}`));
  return [folder, ...(await Promise.all(below)).flat()];
}

function isGone(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === 'ENOENT' || code === 'ENODEV';
}
