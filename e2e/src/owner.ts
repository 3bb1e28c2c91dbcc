import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Who made a cluster that is there. */
export interface ClusterOwner {
  /** Of the process that runs the cell. */
  readonly pid: number;
  /** When that process began, in the kernel's ticks: another process may have its number by now. Undefined where there is no /proc. */
  readonly startTime: string | undefined;
  /** `--keep`: somebody wants to look at it, so it stays when that process ends. */
  readonly isKept: boolean;
}

/** Notes of owners, one file per cluster in a folder that all checkouts of this machine share. */
export interface OwnerNotes {
  /** Whose the cluster is: undefined when nobody left a note, or the process is gone and did not want it kept. */
  find(cluster: string): Promise<ClusterOwner | undefined>;
  /** This process has it from now on, unless another one that runs has it: then that one is returned. */
  claim(cluster: string): Promise<ClusterOwner | undefined>;
  /** It stays when this process ends. */
  keep(cluster: string): Promise<void>;
  drop(cluster: string): Promise<void>;
}

/** `pid` is this process. */
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
    return (error as NodeJS.ErrnoException).code === 'EPERM'; // somebody else's process
  }
  return startTime === (await startTimeOf(pid));
}

/** Field 22 of /proc/PID/stat; the name before it may hold blanks and parentheses. */
async function startTimeOf(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  return text?.slice(text.lastIndexOf(')') + 2).split(' ')[19];
}
