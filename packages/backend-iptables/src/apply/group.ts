import type { Change, ChainRef } from './change.ts';
import type { EntryOwner } from './entry-owners.ts';

/** Whose changes they are. `leftovers`: what nobody asks for, and `what` it is, for people. */
export type GroupOwner =
  | EntryOwner
  | { readonly kind: 'settings' }
  | { readonly kind: 'jumps' }
  | { readonly kind: 'leftovers'; readonly what: string };

/** Changes that belong together: written in one restore. */
export interface Group {
  readonly owner: GroupOwner;
  /**
   * What leads from what the kernel is known to hold to what is wanted. Asked again after a refusal. Throws `HostError` when
   * that cannot be said. `keepsChains`: chains that go are only unlinked, because the kernel will not have one removed.
   */
  plan(keepsChains: boolean): readonly Change[];
  /** All chains that the plan depends on: read again when the kernel refuses it. */
  chains(): readonly ChainRef[];
  /** Takes into the bookkeeping that what was planned last is in the kernel, or that some of it may be. */
  settle(isApplied: boolean): void;
  /** What is to be written all the same after the kernel refused this for good: it only takes rules away. */
  readonly withdrawal?: () => Group;
}
