import { join } from 'node:path';
import { HostError, type IpFamily } from '@switchyard/core';
import type { BackendHost } from '../backends.ts';
import { cleanBackend } from './clean-backend.ts';
import { joinRemovals, nothingRemoved, type Removal, removalOf } from './removal.ts';

/** Where the ebpf mode may have left something. */
export interface EbpfPlace {
  readonly backendHost: BackendHost;
  readonly ipFamilies: readonly IpFamily[];
}

/** How the names of its tables begin: rules, and the guard of its programs. */
const tablePrefix = 'switchyard-ebpf';

/**
 * Removes what the ebpf mode left: pins, and with them programs, links and maps, and its tables of nftables. Needs no BPF: pins are
 * files. Where its tables are and no bpffs is, as in a container without that mount, nothing is removed and that is a failure: its
 * programs may go on forwarding, and the tables are the only sign of them. Never throws but for an abort.
 */
export async function removeEbpfState(place: EbpfPlace, signal: AbortSignal): Promise<Removal> {
  const { backendHost, ipFamilies } = place;
  const unseen = await removalOf(() => refuseUnseenPins(place), signal);
  if (unseen.failures.length > 0) return unseen;
  if (!(await hasBpffs(backendHost))) return nothingRemoved;
  const removals: Removal[] = [];
  for (const ipFamily of ipFamilies) {
    removals.push(await removalOf(() => cleanBackend('ebpf', backendHost, ipFamily, signal), signal));
  }
  return joinRemovals(removals);
}

/**
 * As `removeEbpfState`, for a start of another mode, which most often follows none of the ebpf mode: its backend, large and slow to load,
 * is loaded only where a look finds something of it.
 */
export async function removeLeftEbpfState(place: EbpfPlace, signal: AbortSignal): Promise<Removal> {
  if ((await hasBpffs(place.backendHost)) && !(await mayEbpfStateBeThere(place.backendHost, signal)))
    return nothingRemoved;
  return await removeEbpfState(place, signal);
}

/** Whether pins or tables of the ebpf mode are there, or could not be looked for. Never throws but for an abort. */
export async function mayEbpfStateBeThere(
  { bpffs, tables }: Pick<BackendHost, 'bpffs' | 'tables'>,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const { listPins } = await import('@switchyard/native');
    if (listPins(join(bpffs, 'switchyard')).length > 0) return true;
    return (await ebpfTables({ tables })).length > 0;
  } catch {
    signal.throwIfAborted();
    return true;
  }
}

async function refuseUnseenPins({ backendHost }: EbpfPlace): Promise<Removal> {
  if (await hasBpffs(backendHost)) return nothingRemoved;
  const tables = await ebpfTables(backendHost);
  if (tables.length === 0) return nothingRemoved;
  throw new HostError(
    'cleanup.unseen',
    `the ebpf mode was here (nftables table inet ${tables.join(', ')}), and its programs cannot be removed: no bpffs is mounted at ` +
      `${backendHost.bpffs}, where they are pinned; run --cleanup where the node's bpffs is mounted (--switchyard-ebpf-bpffs says where)`,
  );
}

/** Names of its tables in this network namespace. */
async function ebpfTables({ tables }: Pick<BackendHost, 'tables'>): Promise<readonly string[]> {
  return (await tables.listTables('inet')).filter((name) => name.startsWith(tablePrefix));
}

/** Of this mount namespace. Needs no addon. */
async function hasBpffs({ bpffs }: Pick<BackendHost, 'bpffs'>): Promise<boolean> {
  const { isBpffs } = await import('@switchyard/native');
  return isBpffs(bpffs);
}
