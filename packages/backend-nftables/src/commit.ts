import type { ServicePortKey } from '@switchyard/core';
import type { Change } from './elements.ts';
import { NftError } from './nft-error.ts';

/** Whose changes they are. `leftovers`: elements that nobody asks for. */
export type GroupOwner =
  | { readonly kind: 'services'; readonly keys: readonly ServicePortKey[] }
  | { readonly kind: 'settings' }
  | { readonly kind: 'leftovers' };

/** Changes that belong together: applied in one transaction, or not at all. Not empty. */
export interface ChangeGroup {
  readonly owner: GroupOwner;
  readonly changes: readonly Change[];
  /** Neighbours with the same word go into one transaction where nothing is refused; undefined: no such wish. */
  readonly bond: string | undefined;
  /** Takes into the bookkeeping that the changes are in the kernel, or that they are not. */
  settle(isApplied: boolean): void;
}

/** What became of the groups. */
export interface CommitResult {
  /** Element writes the kernel took; replacing a whole set counts as one. */
  readonly writes: number;
  readonly failed: readonly { readonly owner: GroupOwner; readonly error: NftError }[];
}

/** How groups are written. */
export interface Commit {
  /** More changes than this are split into several transactions. */
  readonly limit: number;
  /** Sends the changes of some groups as one transaction. Throws `NftError` if the kernel refuses it. */
  send(groups: readonly ChangeGroup[]): Promise<void>;
  /** Called between transactions, for others to have their turn. */
  pause(): Promise<void>;
}

/** Refused transactions after which the search for culprits ends and the rest counts as failed. */
const refusalBudget = 200;

/**
 * Writes all groups in their order, as few transactions as possible. When a transaction is refused, the
 * groups at fault are found, by what the kernel says or by halving, and all others are written. Permission
 * problems and everything that is no refusal are thrown. Groups are asked for only when it is their turn.
 */
export async function commitGroups(groups: Iterable<ChangeGroup>, commit: Commit): Promise<CommitResult> {
  const progress: Progress = { writes: 0, failed: [], budget: refusalBudget };
  let isFirst = true;
  for (const part of packGroups(groups, commit.limit)) {
    if (!isFirst) await commit.pause();
    isFirst = false;
    await write(part, commit, progress);
  }
  return progress;
}

interface Progress {
  writes: number;
  readonly failed: { readonly owner: GroupOwner; readonly error: NftError }[];
  budget: number;
}

async function write(groups: readonly ChangeGroup[], commit: Commit, progress: Progress): Promise<void> {
  let error: NftError;
  try {
    await commit.send(groups);
    for (const group of groups) {
      group.settle(true);
      progress.writes += group.changes.length;
    }
    return;
  } catch (thrown) {
    if (!(thrown instanceof NftError) || thrown.refusal === 'permission') throw thrown;
    error = thrown;
  }
  progress.budget--;
  const parts = groups.length === 1 || progress.budget <= 0 ? undefined : suspects(groups, error);
  if (parts === undefined) {
    for (const group of groups) fail(group, error, progress);
    return;
  }
  if (parts.guilty !== undefined) fail(parts.guilty, error, progress);
  for (const rest of parts.rest) if (rest.length > 0) await write(rest, commit, progress);
}

function fail(group: ChangeGroup, error: NftError, progress: Progress): void {
  group.settle(false);
  progress.failed.push({ owner: group.owner, error });
}

interface Suspects {
  /** At fault for certain. */
  readonly guilty: ChangeGroup | undefined;
  /** What is to be tried again. */
  readonly rest: readonly (readonly ChangeGroup[])[];
}

function suspects(groups: readonly ChangeGroup[], { change }: NftError): Suspects {
  const at = change === undefined ? -1 : groups.findIndex(({ changes }) => changes.includes(change));
  if (at >= 0) return { guilty: groups[at], rest: [groups.toSpliced(at, 1)] };
  const middle = Math.ceil(groups.length / 2);
  return { guilty: undefined, rest: [groups.slice(0, middle), groups.slice(middle)] };
}

/** Groups in portions of bounded size, in order; neither a single group nor neighbours with one bond are split. */
export function* packGroups(groups: Iterable<ChangeGroup>, limit: number): Generator<readonly ChangeGroup[]> {
  let part: ChangeGroup[] = [];
  let size = 0;
  for (const group of groups) {
    const bond = part.at(-1)?.bond;
    const isBound = bond !== undefined && bond === group.bond;
    if (part.length > 0 && !isBound && size + group.changes.length > limit) {
      yield part;
      part = [];
      size = 0;
    }
    part.push(group);
    size += group.changes.length;
  }
  if (part.length > 0) yield part;
}
