import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { HostError, type IpFamily } from '@switchyard/core';
import { labFolder, labsRoot } from './names.ts';

/** Content of `lab.json` in a lab's folder, with which another process can find, describe and remove the lab. */
export interface LabRecord {
  readonly name: string;
  readonly owner: ProcessIdentity;
  readonly createdAt: string;
  readonly ipFamilies: readonly IpFamily[];
  readonly nodes: number;
}

/** A pid with the process's start time (clock ticks since boot), because the kernel reuses pids. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTime: string;
}

/** The identity of process `pid`, or undefined if there is none. A zombie counts as ended. */
export async function processIdentity(pid: number): Promise<ProcessIdentity | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  // The second field is the program's name in parentheses and may contain spaces.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  const startTime = fields?.[19];
  if (startTime === undefined || fields?.[0] === 'Z' || fields?.[0] === 'X') return undefined;
  return { pid, startTime };
}

/** Whether exactly this process still runs. */
export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  return (await processIdentity(identity.pid))?.startTime === identity.startTime;
}

/** The record of `lab`, or undefined when there is no readable one. */
export async function readLabRecord(lab: string): Promise<LabRecord | undefined> {
  return readRecord(`${labFolder(lab)}/lab.json`);
}

/** Returns a file's JSON value; undefined if the file is missing or invalid. */
async function readRecord<T>(file: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as T;
  } catch {
    return undefined;
  }
}

/**
 * Creates the lab's folder with its record atomically, so that only one of two processes gets the name.
 * Throws `HostError` with code `lab.taken` when it exists.
 */
export async function claimLabFolder(record: LabRecord): Promise<void> {
  await mkdir(labsRoot, { recursive: true });
  const fresh = await mkdtemp(`${labsRoot}/.new-`);
  try {
    await mkdir(`${fresh}/logs`);
    await writeFile(`${fresh}/lab.json`, `${JSON.stringify(record, undefined, 2)}\n`);
    await rename(fresh, labFolder(record.name));
  } catch (cause) {
    await rm(fresh, { recursive: true, force: true });
    const code = (cause as NodeJS.ErrnoException).code;
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw cause;
    const owner = (await readLabRecord(record.name))?.owner.pid;
    throw new HostError(
      'lab.taken',
      `cannot create lab ${record.name}: it exists and process ${owner ?? 'unknown'} owns it; choose another name, or remove it with ./dev lab down --name ${record.name}`,
      { cause },
    );
  }
}

/** Content of `cluster.json` in a lab's folder, written when its API server and controllers are ready. */
export interface ClusterRecord {
  /** API server on the machine's loopback, and its kubeconfig file. */
  readonly url: string;
  readonly kubeconfig: string;
  /** The same server as the lab's hosts reach it. */
  readonly insideUrl: string;
  readonly insideKubeconfig: string;
}

/** Writes the record, which shows other processes that the cluster is ready. */
export async function writeClusterRecord(lab: string, record: ClusterRecord): Promise<void> {
  const file = `${labFolder(lab)}/cluster.json`;
  await writeFile(`${file}.new`, `${JSON.stringify(record, undefined, 2)}\n`);
  await rename(`${file}.new`, file);
}

/** The record of a ready cluster, or undefined. */
export async function readClusterRecord(lab: string): Promise<ClusterRecord | undefined> {
  return readRecord(`${labFolder(lab)}/cluster.json`);
}
