import { readdir } from 'node:fs/promises';
import { findCgroup2Mount } from './cgroup.ts';
import { labNamespaces } from './destroy-lab.ts';
import { isAlive, type LabRecord, readLabRecord } from './lab-record.ts';
import { isLabName, labOfNamespace, labPrefix, labsDiskRoot, labsRoot, namespacesRoot } from './names.ts';

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
