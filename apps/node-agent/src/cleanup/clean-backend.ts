import { HostError } from '@switchyard/core';
import type { BackendPlace, RegisteredBackend } from '../backends.ts';
import { joinRemovals, nothingRemoved, type Removal, removalOf } from './removal.ts';

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
