import type { Clock, Millis } from '@switchyard/core';
import type { Drift } from '@switchyard/core/engine';
import type { Change, Element } from '../render/elements.ts';
import type {
  CountedObject,
  DropSet,
  ElementObject,
  FamilySuffix,
  IntervalObject,
  TableName,
  TableNames,
} from '../render/names.ts';
import type { TableDescription } from '../render/rules/model.ts';

/** How this backend reaches the kernel. One instance per backend instance; disposing it closes its socket. */
export interface NftTransport extends AsyncDisposable {
  /** Whether `Change`s of kind `class` can be written: load-balancing chains made at run time. */
  readonly canAddClasses: boolean;
  /** Watches over the rules; undefined for the fake kernel. */
  readonly keeper: RulesKeeper | undefined;
  /** Runs work on the table that both families share: in this process, no two of them overlap. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  /** Until the result is disposed, the kernel makes no notices. What others change meanwhile is found out afterwards. */
  unwatched(): Disposable;
  /** Makes a table as one transaction; refused if it exists. `attempt` begins the message of an error. Throws `NftError`. */
  loadRules(attempt: string, rules: TableDescription, signal: AbortSignal): Promise<void>;
  /** Writes ordered changes as one transaction. Throws `NftError`, whose `change` is the one at fault if the kernel names it. */
  write(attempt: string, request: WriteRequest, signal: AbortSignal): Promise<void>;
  /** Reads the birthmark of an `inet` table; undefined when there is no table of this name. */
  findTable(table: string, signal: AbortSignal): Promise<FoundTable | undefined>;
  /** Undefined when there is no such object. While a hash table grows, some occur twice and as many are missing. */
  readElements(object: KernelObject<ElementObject>, signal: AbortSignal): Promise<readonly Element[] | undefined>;
  /**
   * Reads the slots of these sets by their keys: a list of N elements costs the kernel time that grows with N². Undefined when the map
   * has other slots or lacks one, and before Linux 6.16, which reports the number of elements: then use `readElements`.
   */
  readSlots(map: SlotMap, sets: SlotCounts, signal: AbortSignal): Promise<readonly Element[] | undefined>;
  /** The CIDRs of an interval set, sorted; undefined when there is no such object. */
  readIntervals(object: KernelObject<IntervalObject>, signal: AbortSignal): Promise<readonly string[] | undefined>;
  /** Counted packets by key, possibly without those at 0; undefined when there is no such object. */
  readCounters(
    object: KernelObject<CountedObject | DropSet>,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, number> | undefined>;
  /** Replaces the element of a family's heartbeat set. `now` is wall-clock time, for people. Throws `NftError`. */
  writeHeartbeat(heartbeat: Heartbeat & { readonly now: Millis }, signal: AbortSignal): Promise<void>;
  /** Age of the heartbeat by the kernel's clock; undefined when there is none. */
  readHeartbeat(heartbeat: Heartbeat, signal: AbortSignal): Promise<Millis | undefined>;
  /** The load-balancing chains there are: class to the name of its chain. */
  readClasses(table: TableName, suffix: FamilySuffix, signal: AbortSignal): Promise<ReadonlyMap<number, string>>;
  /** Every map and set of a table, of any version, and whether it holds elements. */
  listObjects(table: string, signal: AbortSignal): Promise<readonly ListedObject[]>;
  /** Empties these objects of a table of any version, in one transaction. */
  flushObjects(table: string, objects: readonly ListedObject[], signal: AbortSignal): Promise<void>;
  deleteTable(table: string, signal: AbortSignal): Promise<void>;
}

export interface WriteRequest {
  readonly table: TableName;
  readonly changes: readonly Change[];
}

export interface FoundTable {
  /** The elements of its set `birthmark`; undefined when it has no such set. */
  readonly birthmarks: readonly number[] | undefined;
}

export interface Heartbeat {
  readonly table: string;
  readonly suffix: FamilySuffix;
}

/** The map of all slots of a family. */
export type SlotMap = Pick<KernelObject<'endpoints'>, 'table' | 'suffix'>;

/** Numbers of slots by endpoint set. */
export type SlotCounts = ReadonlyMap<number, number>;

export interface KernelObject<Name> {
  readonly table: TableName;
  readonly object: Name;
  readonly suffix: FamilySuffix;
}

export interface ListedObject {
  readonly kind: 'map' | 'set';
  readonly name: string;
  readonly isEmpty: boolean;
}

/** Compares our table with its loaded state, and watches for foreign changes. Methods throw `HostError`. */
export interface RulesKeeper {
  /** Marks the current rules of a table as right. Call it right after they were loaded. */
  mark(table: string): void;
  /** Marks chains that were just added at run time, and the classes that lead to them, as right. */
  markChains(table: string, names: readonly string[]): void;
  /** Whether the rules are as marked; without marks they are not. Deletes foreign objects; false if that fails. */
  areRight(table: string): boolean;
  /** As `BackendObservers.drift`, for one family. */
  watch(what: WatchedFamily, report: (drift: Drift) => void, signal: AbortSignal): Promise<void>;
}

/** The family whose elements are watched besides the rules. */
export interface WatchedFamily {
  readonly suffix: FamilySuffix;
  readonly clock: Clock;
  readonly tables: TableNames;
  /** The table that is written to; undefined when the next apply reads the kernel back anyway. */
  readonly written: () => TableName | undefined;
}
