import { requireText } from '../../base/argument.ts';
import { HostError } from '../../base/errors.ts';
import type { Clock } from '../../base/time.ts';
import type { DataplaneTraits } from '../../model/forwarding/dataplane-traits.ts';
import type { ServiceForwarding } from '../../model/forwarding/forwarding-table.ts';
import type { ServicePortKey } from '../../model/records/keys.ts';
import type { ApplyRequest } from '../dataplane-backend.ts';
import type { CommitResult } from './apply-engine.ts';

/** One service port to bring up to date. */
export interface ServiceWish {
  readonly key: ServicePortKey;
  /** Wanted forwarding; undefined: none, so that the kernel must hold nothing of it. */
  readonly service: ServiceForwarding | undefined;
}

/**
 * Connects the engine with one kernel interface. It renders, reads and writes; what is applied is recorded in the
 * `ServiceTracker`, which the driver fills as its groups are settled. The driver's own record is that of kernel objects, such as
 * their ids.
 */
export interface Driver<Group extends ChangeGroup<Change>, Change> {
  /**
   * Begins an apply. Reads back what the scope needs: for `full` everything, or after drift the objects that other processes may have
   * changed; for `delta` only the objects that the record lacks. The tracker then holds the kernel's state. Rejects with `HostError`.
   */
  begin(request: ApplyRequest, signal: AbortSignal): Promise<DriverRun<Group, Change>>;
  /** Drops the record of the kernel: the next apply is a full one. */
  forget(): void;
}

/**
 * One apply. Its groups are taken in the order `before`, `services`, `after`, `stale`, one by one when their turn comes, so that each
 * is planned after the writes before it.
 */
export interface DriverRun<Group extends ChangeGroup<Change>, Change> {
  /**
   * Service ports to compare with the kernel although the tracker says that they are applied. Undefined: only those
   * that the delta names are compared.
   */
  readonly unknown: ReadonlySet<ServicePortKey> | 'all' | undefined;
  readonly writer: GroupWriter<Group, Change>;
  /** Changes of settings that services need. */
  before(): Iterable<Group>;
  /** The changes of service ports; those that are not wanted come last. */
  services(wishes: Iterable<ServiceWish>): Iterable<Group>;
  /** Changes of settings that need the services. */
  after(): Iterable<Group>;
  /** Removals of stale objects. `result`: of the groups so far. */
  stale(result: CommitResult): Iterable<Group>;
  /** Ends the apply when all groups were written or have failed. `commit` writes more groups, with the same result. */
  finish(
    done: { readonly result: CommitResult; readonly commit: (groups: Iterable<Group>) => Promise<void> },
    signal: AbortSignal,
  ): Promise<void>;
}

/** The owner of a group's changes. `stale`: objects of the backend that no table contains; `what` names them in errors. */
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
   * Returns the changes from the kernel's state to the wanted state; empty when there is nothing to write. Called
   * again after each refusal that may have changed the kernel. An expected error fails a group of services;
   * `KernelDiffersError` and all others end the commit.
   */
  plan(): readonly Change[];
  /** Records whether the changes planned last are in the kernel. False: some of them may be. */
  settle(isApplied: boolean): void;
}

/** A group and its changes, from the kernel's state to the wanted state. Not empty. */
export interface PlannedGroup<Group extends ChangeGroup<Change>, Change> {
  readonly group: Group;
  readonly changes: readonly Change[];
}

/** The result of one write. `writes` counts the changes that the kernel accepted, which a refused write may have too. */
export type WriteResult<Group> =
  | { readonly status: 'written'; readonly writes: number }
  | {
      readonly status: 'refused';
      readonly writes: number;
      readonly error: Error;
      /** The group that the kernel refused; undefined when the kernel does not say. */
      readonly group?: Group | undefined;
      /** Whether another process blocked the write: the same write may succeed soon. */
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
  /** For pauses between writes: a write blocks the event loop. */
  readonly isBlocking: boolean;
  readonly clock: Pick<Clock, 'sleep'>;
  /** Weight of the groups in one write. A heavier group is written alone. */
  readonly limit: number;
  /** Refused writes after which the search for the refused group ends and the rest of its write fails. */
  readonly refusalBudget: number;
  weigh(changes: readonly Change[]): number;
  /** Writes groups in their order. Rejects for errors that no group caused, such as a missing permission. */
  write(groups: readonly PlannedGroup<Group, Change>[], signal: AbortSignal): Promise<WriteResult<Group>>;
  /** Whether a group that the kernel refused by itself may be planned and written once more. Default: no. */
  reconsider?(refused: PlannedGroup<Group, Change>, error: Error, signal: AbortSignal): Promise<boolean>;
  /** The group to write in place of a failed one: removals that must still happen. Default: none. */
  insteadOf?(failed: Group): Group | undefined;
}

/** The kernel differs from the record of an earlier apply. It must be read back before the next write. */
export class KernelDiffersError extends HostError {
  override readonly name = 'KernelDiffersError';

  /** Throws `UsageError` unless `what` is a text. */
  constructor(what: string, options?: ErrorOptions) {
    requireText('KernelDiffersError: what', what);
    super('apply.kernel-differs', `the rules are not as recorded: ${what}; they are read back`, options);
  }
}
