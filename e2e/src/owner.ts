import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

interface ClusterOwner {
  /** Id of the process that runs the cell. */
  readonly pid: number;
  /** Start time of that process in the kernel's ticks, because its id may be reused. Undefined where there is no /proc. */
  readonly startTime: string | undefined;
  /** `--keep`: the cluster stays when that process ends. */
  readonly isKept: boolean;
}

/** Notes of owners, one file per cluster in a folder that all checkouts of this machine share. */
export interface OwnerNotes {
  /** Owner of the cluster. Undefined: there is no note, or its process has ended and did not keep the cluster. */
  find(cluster: string): Promise<ClusterOwner | undefined>;
  /** Makes this process the owner, or returns the owner if another running process has the cluster. */
  claim(cluster: string): Promise<ClusterOwner | undefined>;
  /** Marks the cluster as kept: it stays when this process ends. */
  keep(cluster: string): Promise<void>;
  drop(cluster: string): Promise<void>;
}

export function ownerNotes(folder: string, pid: number = process.pid): OwnerNotes {
  const file = (cluster: string): string => join(folder, `${cluster}.json`);
  const write = async (cluster: string, isKept: boolean): Promise<void> => {
    await mkdir(folder, { recursive: true });
    const owner: ClusterOwner = { pid, startTime: await startTimeOf(pid), isKept };
    await writeFile(file(cluster), JSON.stringify(owner));
  };
  const find = async (cluster: string): Promise<ClusterOwner | undefined> => {
    const owner = parseOwner(await readFile(file(cluster), 'utf8').catch(() => ''));
    if (owner === undefined || owner.isKept) return owner;
    return (await isRunning(owner)) ? owner : undefined;
  };
  return {
    find,
    claim: async (cluster) => {
      const owner = await find(cluster);
      if (owner !== undefined && !owner.isKept) return owner;
      await write(cluster, false);
      return undefined;
    },
    keep: (cluster) => write(cluster, true),
    drop: (cluster) => rm(file(cluster), { force: true }),
  };
}

/** A note that was cut off by a crash is none. */
function parseOwner(text: string): ClusterOwner | undefined {
  try {
    const { pid, startTime, isKept } = JSON.parse(text) as Partial<ClusterOwner>; // only written above
    return typeof pid === 'number' ? { pid, startTime, isKept: isKept === true } : undefined;
  } catch {
    return undefined;
  }
}

async function isRunning({ pid, startTime }: ClusterOwner): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'; // another user's process
  }
  return startTime === (await startTimeOf(pid));
}

/** Field 22 of /proc/PID/stat; the name before it may hold blanks and parentheses. */
async function startTimeOf(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  return text?.slice(text.lastIndexOf(')') + 2).split(' ')[19];
}
