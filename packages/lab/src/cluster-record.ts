import { rename, writeFile } from 'node:fs/promises';
import { readRecord } from './lab-record.ts';
import { labFolder } from './names.ts';

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
