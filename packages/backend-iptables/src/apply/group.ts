import type { ChangeGroup } from '@switchyard/core/engine';
import type { Change, ChainRef } from './change.ts';
import type { EntryOwner } from './entry-owners.ts';

/** Changes that are written in one restore. */
export interface Group extends ChangeGroup {
  /** In whose name rules of shared chains are claimed; undefined for a group that claims none. */
  readonly entryOwner?: EntryOwner;
  /**
   * Returns what leads from what the kernel is known to hold to what is wanted. Called again after a refusal. Throws
   * `UsageError` when that cannot be said. `keepsChains`: unwanted chains are only unlinked, because the kernel refuses
   * to remove one.
   */
  plan(keepsChains: boolean): readonly Change[];
  /** All chains that the plan depends on: read again when the kernel refuses it. */
  chains(): readonly ChainRef[];
  /** Written after the kernel has refused this group finally: removals only. */
  readonly withdrawal?: () => Group;
}
