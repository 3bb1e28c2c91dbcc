import type { Millis } from '../../time.ts';
import type { ChangeGroup, PlannedGroup } from './change-group.ts';

/** The result of one write. `writes` counts the changes that the kernel accepted, which a refused write may have too. */
export type WriteResult<Group extends ChangeGroup> =
  | { readonly status: 'written'; readonly writes: number }
  | {
      readonly status: 'refused';
      readonly writes: number;
      readonly error: Error;
      /** The group that the kernel refused; undefined when the kernel does not say. */
      readonly group?: Group | undefined;
      /** Another process was in the way: the same write may succeed soon. */
      readonly isTransient?: boolean;
    };

/** How a backend hands change groups to its kernel. */
export interface GroupWriter<Group extends ChangeGroup, Change> {
  /** Weight of the groups in one write. A heavier group is written alone. */
  readonly limit: number;
  /** Refused writes after which the search for the refused group ends and the rest of its write fails. */
  readonly refusalBudget: number;
  /**
   * Returns what leads from the kernel's state to what the group wants; empty when there is nothing to write. Called
   * again after each refusal. An expected error fails a group of services; `KernelDiffersError` and all
   * others end the commit.
   */
  plan(group: Group): readonly Change[];
  weigh(changes: readonly Change[]): number;
  /** Writes groups in their order. Rejects for what no group is to blame for, such as a missing permission. */
  write(groups: readonly PlannedGroup<Group, Change>[], signal: AbortSignal): Promise<WriteResult<Group>>;
  /** Lets other work run between two writes. */
  pause(signal: AbortSignal): Promise<void>;
  /** Waits before a write is repeated after a transient refusal. */
  sleep(duration: Millis, signal: AbortSignal): Promise<void>;
  /** Whether a group that the kernel refused by itself may be planned and written once more. Default: no. */
  reconsider?(refused: PlannedGroup<Group, Change>, error: Error, signal: AbortSignal): Promise<boolean>;
  /** The group to write in place of a failed one: removals that must still happen. Default: none. */
  insteadOf?(failed: Group): Group | undefined;
}
