import { readFileSync } from 'node:fs';
import { HostError, type IpAddress } from '@switchyard/core';

/** States of /proc/net/tcp in which a client may still send or wait: ESTABLISHED, SYN_RECV, CLOSE_WAIT. */
const openStates: ReadonlySet<string> = new Set(['01', '03', '08']);

/** Number of open connections to local ports, of the text of `/proc/PID/net/tcp` or `tcp6`. */
export function countOpen(text: string, ports: ReadonlySet<number>): number {
  return text.split('\n').filter((line) => {
    const [, local = '', , state = ''] = line.trim().split(/\s+/);
    return openStates.has(state) && ports.has(Number.parseInt(local.split(':')[1] ?? '', 16));
  }).length;
}

/** Folder in /proc of a process in the namespace of a pod, by address; one that ended is looked for anew. */
const folders = new Map<IpAddress, string>();
const maxFolders = 1000;

/**
 * Open TCP connections to ports of a pod of this node, as its own network namespace has them. Rejects with `HostError` if no process in it is
 * visible: that needs hostPID and CAP_SYS_PTRACE.
 */
export async function countConnections(addresses: readonly IpAddress[], ports: ReadonlySet<number>): Promise<number> {
  const [address] = addresses;
  if (address === undefined) return 0;
  const known = folders.get(address);
  const before = known === undefined ? undefined : read(known, ports);
  if (before !== undefined) return before;
  folders.delete(address);
  const { listNamespaces } = await import('@switchyard/drops');
  const found = listNamespaces().find((one) => one.addresses.has(address));
  const now = found === undefined ? undefined : read(found.folder, ports);
  if (found === undefined || now === undefined) {
    throw new HostError(
      'drain.namespace',
      `no visible process has the address ${address}: the agent needs hostPID and SYS_PTRACE to count connections`,
    );
  }
  if (folders.size >= maxFolders) folders.clear();
  folders.set(address, found.folder);
  return now;
}

/** Undefined if the process has ended. */
function read(folder: string, ports: ReadonlySet<number>): number | undefined {
  try {
    return ['tcp', 'tcp6'].reduce(
      (sum, name) => sum + countOpen(readFileSync(`${folder}/net/${name}`, 'utf8'), ports),
      0,
    );
  } catch {
    return undefined;
  }
}
