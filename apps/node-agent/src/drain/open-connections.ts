import { readFileSync } from 'node:fs';
import { HostError, type IpAddress, messageOf } from '@switchyard/core';
import type { ConnectionsReply, CountedPod, OpenConnections } from '@switchyard/drain-gate';

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

/** Open connections of a pod of this node, with the reason for those that cannot be counted. */
export async function countConnections({ addresses, ports }: CountedPod): Promise<Omit<ConnectionsReply, 'node'>> {
  const [address] = addresses;
  const tcp = ports.get('TCP');
  const counts = await Promise.allSettled<OpenConnections>([
    address === undefined || tcp === undefined ? {} : countTcp(address, tcp).then((TCP) => ({ TCP })),
    ports.has('UDP') || ports.has('SCTP') ? countTracked({ addresses, ports }) : {},
  ]);
  const open: OpenConnections = Object.assign(
    {},
    ...counts.map((one) => (one.status === 'fulfilled' ? one.value : {})),
  );
  const reasons = counts.flatMap((one) => (one.status === 'rejected' ? [messageOf(one.reason)] : []));
  return { open, ...(reasons.length === 0 ? {} : { why: reasons.join('; ') }) };
}

/** Rejects with `HostError` or `NativeError`. */
async function countTracked(pod: CountedPod): Promise<OpenConnections> {
  const { countPodFlows } = await import('@switchyard/netfilter');
  return countPodFlows(pod);
}

/**
 * Connections as the sockets of the pod's own network namespace have them. Rejects with `HostError` if no process in it is visible:
 * that needs hostPID and CAP_SYS_PTRACE.
 */
async function countTcp(address: IpAddress, ports: ReadonlySet<number>): Promise<number> {
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
