import type { ServicePortKey } from '../../model/records/keys.ts';

/** The owner of a group's changes. `stale`: our objects that no table wants; `what` names them in errors. */
export type GroupOwner =
  | { readonly kind: 'services'; readonly keys: readonly ServicePortKey[] }
  | { readonly kind: 'settings' }
  | { readonly kind: 'stale'; readonly what: string };

/** Changes that the kernel must get together or not at all. */
export interface ChangeGroup<Change> {
  readonly owner: GroupOwner;
  /** Neighbouring groups with the same value share one write, however large, as long as the kernel accepts it. */
  readonly together?: string | undefined;
  /**
   * Returns what leads from the kernel's state to what the group wants; empty when there is nothing to write. Called
   * again after each refusal that may have changed the kernel. An expected error fails a group of services;
   * `KernelDiffersError` and all others end the commit.
   */
  plan(): readonly Change[];
  /** Records whether the changes planned last are in the kernel. False: some of them may be. */
  settle(isApplied: boolean): void;
}

/** A group and its changes, from what the kernel holds to what the group wants. Not empty. */
export interface PlannedGroup<Group extends ChangeGroup<Change>, Change> {
  readonly group: Group;
  readonly changes: readonly Change[];
}
