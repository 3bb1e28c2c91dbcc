import { HostError } from '@switchyard/core';
import type { BackendPlace, RegisteredBackend, BackendHost } from '../backends.ts';
import { joinRemovals, nothingRemoved, type Removal, removalOf } from './removal.ts';
import { join } from 'node:path';

/**
 * Removes the state of a backend by its `cleanup` in each family. Does not probe the host, which may have the state of a mode that
 * it can no longer run. Rejects only when aborted.
 */
export async function cleanBackend(
  { load }: RegisteredBackend,
  { host, ipFamilies }: BackendPlace,
  signal: AbortSignal,
): Promise<Removal> {
  const removals: Removal[] = [];
  for (const ipFamily of ipFamilies) {
    const clean = async (): Promise<Removal> => {
      await using backend = await (await load()).open(host, ipFamily, signal);
      return { ...nothingRemoved, removed: await backend.cleanup(signal) };
    };
    removals.push(await removalOf(clean, signal));
  }
  return joinRemovals(removals);
}

/** As `cleanBackend`, for the start of another mode: loads the nftables backend only if the kernel has a table of its names. */
export async function cleanLeftNftables(
  backend: RegisteredBackend,
  place: BackendPlace,
  signal: AbortSignal,
): Promise<Removal> {
  try {
    const names = await place.host.tables.listTables('inet');
    if (!names.some((name) => name.startsWith('switchyard'))) return nothingRemoved;
  } catch (error) {
    if (!(error instanceof HostError)) throw error; // the clean-up reports the others
  }
  return cleanBackend(backend, place, signal);
}

/**
 * Removes the state of the ebpf mode: pins, and with them programs, links and maps, and its nftables tables. Needs no BPF, because
 * pins are files. If there are tables but no bpffs, as in a container without that mount, it removes nothing and reports a failure:
 * the programs may still forward, and the tables are the only trace of them. Rejects only when aborted.
 */
export async function removeEbpfState(
  backend: RegisteredBackend,
  place: BackendPlace,
  signal: AbortSignal,
): Promise<Removal> {
  return removalOf(async () => {
    const { host } = place;
    if (await hasBpffs(host)) return cleanBackend(backend, place, signal);
    const tables = await ebpfTables(host);
    if (tables.length === 0) return nothingRemoved;
    throw new HostError(
      'cleanup.unseen',
      `the ebpf mode was here (nftables table inet ${tables.join(', ')}), and its programs cannot be removed: no bpffs is mounted at ` +
        `${host.bpffs}, where they are pinned; run --cleanup where the node's bpffs is mounted (--switchyard-ebpf-bpffs says where)`,
    );
  }, signal);
}

/**
 * As `removeEbpfState`, for the start of another mode. Loads the ebpf backend, which is large and slow to load, only if there is
 * state of that mode.
 */
export async function removeLeftEbpfState(
  backend: RegisteredBackend,
  place: BackendPlace,
  signal: AbortSignal,
): Promise<Removal> {
  if ((await hasBpffs(place.host)) && !(await mayEbpfStateBeThere(place.host, signal))) return nothingRemoved;
  return removeEbpfState(backend, place, signal);
}

/** Whether there are pins or tables of the ebpf mode, or the search failed. Rejects only when aborted. */
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

/** Names of its tables in this network namespace: rules, and the guard of its programs. */
async function ebpfTables({ tables }: Pick<BackendHost, 'tables'>): Promise<readonly string[]> {
  return (await tables.listTables('inet')).filter((name) => name.startsWith('switchyard-ebpf'));
}

/** Whether this mount namespace has a bpffs there. Needs no addon. */
async function hasBpffs({ bpffs }: Pick<BackendHost, 'bpffs'>): Promise<boolean> {
  const { isBpffs } = await import('@switchyard/native');
  return isBpffs(bpffs);
}
