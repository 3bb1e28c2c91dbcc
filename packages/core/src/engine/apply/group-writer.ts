import type { Clock } from '../../base/time.ts';
import type { DataplaneTraits } from '../../model/forwarding/dataplane-traits.ts';
import type { ChangeGroup, PlannedGroup } from './change-group.ts';

/** The result of one write. `writes` counts the changes that the kernel accepted, which a refused write may have too. */
export type WriteResult<Group> =
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

/**
 * Unit that the kernel accepts or refuses as a whole. `transaction`: a refused write changes nothing, so plans stay valid.
 * `table`: the tables before the refused one are written. `store`: every store before the refused one is written.
 */
export type Atomicity = DataplaneTraits['atomicity'];

/** How a backend hands change groups to its kernel. */
export interface GroupWriter<Group extends ChangeGroup<Change>, Change> {
  readonly atomicity: Atomicity;
  /** A write stops the event loop, so other work gets its turn between two. */
  readonly isBlocking: boolean;
  readonly clock: Pick<Clock, 'sleep'>;
  /** Weight of the groups in one write. A heavier group is written alone. */
  readonly limit: number;
  /** Refused writes after which the search for the refused group ends and the rest of its write fails. */
  readonly refusalBudget: number;
  weigh(changes: readonly Change[]): number;
  /** Writes groups in their order. Rejects for what no group is to blame for, such as a missing permission. */
  write(groups: readonly PlannedGroup<Group, Change>[], signal: AbortSignal): Promise<WriteResult<Group>>;
  /** Whether a group that the kernel refused by itself may be planned and written once more. Default: no. */
  reconsider?(refused: PlannedGroup<Group, Change>, error: Error, signal: AbortSignal): Promise<boolean>;
  /** The group to write in place of a failed one: removals that must still happen. Default: none. */
  insteadOf?(failed: Group): Group | undefined;
}
