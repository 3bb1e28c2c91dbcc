import type { ServiceForwarding } from '../../model/forwarding/forwarding-table.ts';
import type { ServicePortKey } from '../../model/records/keys.ts';
import type { ApplyRequest } from '../dataplane-backend.ts';
import type { ChangeGroup } from './change-group.ts';
import type { CommitResult } from './commit-groups.ts';
import type { GroupWriter } from './group-writer.ts';

/** One service port to bring up to date. */
export interface ServiceWish {
  readonly key: ServicePortKey;
  /** Undefined: the kernel shall hold nothing of it. */
  readonly service: ServiceForwarding | undefined;
}

/**
 * Connects the engine with one kernel interface. It renders, reads and writes; what is applied is recorded in the
 * `ServiceTracker`, which the driver fills as its groups are settled. The driver's own record is that of kernel objects, such as
 * their ids.
 */
export interface Driver<Group extends ChangeGroup<Change>, Change> {
  /**
   * Begins an apply. Reads back what the scope needs: for `full` everything, or after drift what others may have changed;
   * for `delta` only what the record lacks. The tracker then holds what was found. Rejects with `HostError`.
   */
  begin(request: ApplyRequest, signal: AbortSignal): Promise<DriverRun<Group, Change>>;
  /** Drops what is known of the kernel: the next apply is a full one. */
  forget(): void;
}

/**
 * One apply. Its groups are taken in the order `before`, `services`, `after`, `stale`, one by one when their turn comes, so that each
 * is planned with what the writes before it left.
 */
export interface DriverRun<Group extends ChangeGroup<Change>, Change> {
  /**
   * Service ports to compare with the kernel although the tracker says that they are applied. Undefined: only those
   * that the delta names are looked at.
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
