import { UsageError } from '@switchyard/core';

/** Prefix of every namespace and cgroup directory of all labs; identifies labs without their records. */
export const labPrefix = 'swy-';
/** Folder of all labs' folders. */
export const labsRoot = '/run/switchyard';
/** Folder for files that are too large for /run, which may be in memory. */
export const labsDiskRoot = '/var/tmp/switchyard-labs';
/** Folder of the names of `ip netns`. */
export const namespacesRoot = '/run/netns';

/** Throws `UsageError` unless `name` can name a lab. The pattern has no dash, so `swy-<lab>-<host>` is unambiguous. */
export function checkLabName(name: string): void {
  if (isLabName(name)) return;
  throw new UsageError('lab.name', `not a lab name: ${JSON.stringify(name)}; use 1 to 8 of a-z and 0-9`);
}

/** Whether `name` can name a lab. */
export function isLabName(name: string): boolean {
  return /^[a-z0-9]{1,8}$/.test(name);
}

/** Throws `UsageError` unless `name` can name a host or pod of a lab. */
export function checkHostName(name: string): void {
  if (/^[a-z0-9]([-a-z0-9.]{0,198}[a-z0-9])?$/.test(name)) return;
  throw new UsageError('lab.host', `not a host or pod name: ${JSON.stringify(name)}; use a-z, 0-9, "-" and "."`);
}

/** The network namespace of `host` in `lab`. */
export function namespaceName(lab: string, host: string): string {
  return `${labPrefix}${lab}-${host}`;
}

/** Returns the lab of a namespace; undefined for a namespace without a lab. */
export function labOfNamespace(namespace: string): string | undefined {
  return /^swy-([a-z0-9]{1,8})-.+$/.exec(namespace)?.[1];
}

/** The lab's folder: its record, logs, BPF mounts and scratch files. */
export function labFolder(lab: string): string {
  return `${labsRoot}/${lab}`;
}

/** The lab's folder for large files; created at its first use. Removed with the lab. */
export function labDiskFolder(lab: string): string {
  return `${labsDiskRoot}/${lab}`;
}

/** The folder of the lab's cgroups below the cgroup v2 mount at `mount`. */
export function labCgroup(mount: string, lab: string): string {
  return `${mount}/${labPrefix}${lab}`;
}

/** Log file of the background process of `lab up`. */
export function daemonLog(lab: string): string {
  return `${labsRoot}/daemon-${lab}.log`;
}
