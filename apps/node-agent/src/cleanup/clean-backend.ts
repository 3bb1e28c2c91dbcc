import type { BackendPlace, RegisteredBackend } from '../backends.ts';
import { joinRemovals, nothingRemoved, type Removal, removalOf } from './removal.ts';

/**
 * Removes what a backend made, by its own `cleanup` in each family. Not probed: a host that can no longer run a mode may still have its
 * state. Never rejects but for an abort.
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
