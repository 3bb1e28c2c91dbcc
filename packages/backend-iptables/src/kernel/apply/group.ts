import type { ChangeGroup } from '@switchyard/core/engine';
import type { Change, ChainRef } from './change.ts';
import type { EntryOwner } from './entry-owners.ts';

/** Changes that are written in one restore. */
export interface Group extends ChangeGroup<Change> {
  /** Owner of the rules that the group claims in shared chains; undefined for a group that claims none. */
  readonly entryOwner?: EntryOwner;
  /** Set when the kernel refuses to remove an unwanted chain: the next plan only unlinks such chains. */
  keepsChains?: boolean;
  /** All chains that the plan depends on: read again when the kernel refuses it. */
  chains(): readonly ChainRef[];
  /** The removals to write in place of this group when the kernel has refused it finally. */
  readonly afterRefusal?: () => Group;
}
