import type { Change } from './elements.ts';
import { elementObjects } from './names.ts';
import { NftError } from './nft-error.ts';

/** Changes that belong together: applied in one transaction, or not at all. */
export interface ChangeGroup<Owner> {
  readonly owner: Owner;
  readonly changes: readonly Change[];
}

/** What became of the groups. */
export interface CommitResult<Owner> {
  /** Element writes the kernel took; replacing a whole set counts as one. */
  readonly writes: number;
  readonly failed: ReadonlyMap<Owner, NftError>;
}

/** Sends the changes of some groups as one transaction. Throws `NftError` if the kernel refuses it. */
export type Send = (changes: readonly Change[]) => Promise<void>;

/** More changes than this are split, which bounds the memory of the nft process (about 1 KB per element). */
export const changesPerTransaction = 50_000;

/** Refused transactions after which the search for culprits ends and the rest counts as failed. */
const refusalBudget = 200;

/**
 * Writes all groups, as few transactions as possible. When a transaction is refused, it is halved until the
 * groups at fault are alone; all others are written. Permission problems and everything that is no refusal are thrown.
 */
export async function commitGroups<Owner>(
  groups: readonly ChangeGroup<Owner>[],
  send: Send,
): Promise<CommitResult<Owner>> {
  const failed = new Map<Owner, NftError>();
  let writes = 0;
  let budget = refusalBudget;
  const write = async (some: readonly ChangeGroup<Owner>[]): Promise<void> => {
    const changes = some.flatMap((group) => group.changes);
    try {
      await send(changes);
      writes += changes.length;
    } catch (error) {
      if (!(error instanceof NftError) || error.refusal === 'permission') throw error;
      budget--;
      if (some.length === 1 || budget <= 0) {
        for (const { owner } of some) failed.set(owner, error);
        return;
      }
      const middle = Math.ceil(some.length / 2);
      await write(some.slice(0, middle));
      await write(some.slice(middle));
    }
  };
  for (const part of packGroups(groups)) await write(part);
  return { writes, failed };
}

/** Groups in portions of bounded size, in order; a single group is never split. */
export function packGroups<Owner>(groups: readonly ChangeGroup<Owner>[]): readonly (readonly ChangeGroup<Owner>[])[] {
  const total = groups.reduce((sum, group) => sum + group.changes.length, 0);
  if (total === 0) return [];
  const wanted = total > changesPerTransaction ? lateLast(groups) : groups;
  const parts: ChangeGroup<Owner>[][] = [[]];
  let size = 0;
  for (const group of wanted) {
    if (size > 0 && size + group.changes.length > changesPerTransaction) {
      parts.push([]);
      size = 0;
    }
    parts.at(-1)?.push(group);
    size += group.changes.length;
  }
  return parts;
}

/**
 * A cluster IP makes its unknown ports an error, so it must not be there before the frontends of all its
 * ports are. In one transaction that holds by itself; in several, cluster IPs come last.
 */
function lateLast<Owner>(groups: readonly ChangeGroup<Owner>[]): readonly ChangeGroup<Owner>[] {
  const last = elementObjects.at(-1) ?? '';
  const isLate = (change: Change): boolean => change.kind === 'add' && change.id.startsWith(last);
  const early = groups.map(({ owner, changes }) => ({ owner, changes: changes.filter((change) => !isLate(change)) }));
  const late = groups.map(({ owner, changes }) => ({ owner, changes: changes.filter(isLate) }));
  return [...early, ...late].filter(({ changes }) => changes.length > 0);
}
