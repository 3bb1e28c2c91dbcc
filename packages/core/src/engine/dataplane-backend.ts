import type { IpFamily } from '../model/ip/address.ts';
import type { ServicePortKey } from '../model/records/keys.ts';
import type { Millis } from '../base/time.ts';
import type { ForwardingTable, TableDelta } from '../model/forwarding/forwarding-table.ts';

/** Result of one `apply`. Expected failure is a value. */
export type ApplyOutcome =
  | ({ readonly status: 'applied' } & Written)
  /** All other services are in the kernel. The caller names the failed ones in its next delta: `withFailed`. */
  | ({ readonly status: 'partial'; readonly failed: ReadonlyMap<ServicePortKey, Error> } & Written)
  /** Nothing was changed, or the changes are unknown: the next apply must be `full`. */
  | { readonly status: 'failed'; readonly error: Error; readonly retryAfter?: Millis };

/** Changes of an apply in the kernel, and failures to remove objects. */
export interface Written {
  readonly writes: number;
  /** Reason why a stale object remains among the objects of the backend; absent when none does. */
  readonly unremoved?: Error;
}

/** One request to make the kernel match a table. */
export interface ApplyRequest {
  readonly table: ForwardingTable;
  /**
   * - `delta`: trust what the previous apply left. The delta names what changed since, and the services that failed then. A
   *   backend that does not know what the kernel holds makes it a full apply.
   * - `full`: read the kernel back first. `after: 'drift'` follows a report of `observers.drift`: objects that it did not report
   *   need not be read. `stale: 'keep'` need not remove stale objects: another full apply follows, once something else forwards
   *   what they do.
   */
  readonly scope:
    | { readonly kind: 'full'; readonly after?: 'drift'; readonly stale?: 'keep' }
    | { readonly kind: 'delta'; readonly delta: TableDelta };
}

/** Capabilities of a backend, stated rather than probed by method existence. */
export interface BackendCapabilities {
  /** Forwarding uses kernel conntrack, so stale UDP flows must be removed after endpoint changes. */
  readonly usesKernelConntrack: boolean;
  readonly sessionAffinity: boolean;
  readonly sourceRanges: boolean;
  /** The backend's own floor between two applies. */
  readonly minSyncPeriod: Millis;
}

/** Counters of the kernel for one service port since its elements were created; they survive a restart of the agent. */
export interface ServiceCounters {
  /** First packets of connections that reached one of its frontends, refused ones included. */
  readonly connections: number;
  /** First packets that were refused, by reason. */
  readonly drops: {
    /** Endpoints exist, none on this node, and policy is `Local`: dropped. */
    readonly noLocalEndpoint: number;
    /** No usable endpoint anywhere: rejected. */
    readonly noEndpoints: number;
    /** Not in `loadBalancerSourceRanges`: dropped. */
    readonly sourceRange: number;
  };
}

/**
 * Kind of object that a foreign change touched, the worst of several. `program`: a program of the backend is not attached, or will
 * not be after a restart. `map`: a BPF map is not pinned where the next process expects it. `unknown`: notices were lost, any
 * object may have changed.
 */
export type DriftKind = 'table' | 'chain' | 'rule' | 'set' | 'program' | 'map' | 'element' | 'unknown';

/** A change of kernel objects of the backend by another process. */
export interface Drift {
  readonly kind: DriftKind;
  /** Description of each change, such as `element 10.96.0.1 . tcp . 80 of frontends4 deleted`; the first few of many. */
  readonly changes: readonly string[];
  /** Process that made the change, where the kernel reports it. */
  readonly process: { readonly pid: number; readonly name: string } | undefined;
}

/**
 * Drives one IP family of one dataplane. Calls of `apply` and `cleanup` never overlap. Disposal leaves forwarding in place.
 * `backendContract` of `@switchyard/scenarios` checks every clause below.
 */
export interface DataplaneBackend extends AsyncDisposable {
  readonly name: string;
  readonly ipFamily: IpFamily;
  readonly capabilities: BackendCapabilities;
  /**
   * Makes the kernel match the table.
   * - A kernel that already matches is not written: `writes` is 0, also in a new instance that finds what another one wrote.
   * - `delta` and `full` lead to the same kernel.
   * - A refusal by the kernel never rejects. Services that the kernel refused are named in `partial` and all others are
   *   written; the next apply that names them, or a full one, writes them once the kernel accepts them.
   * - An aborted apply rejects with `signal.reason`, unless there was nothing to write. The next apply repairs what it left.
   */
  apply(request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome>;
  /**
   * Removes all state that any version of this backend may have left in this family. Needs no table and no earlier call.
   * Returns descriptions of the removed objects; a second call returns an empty array, and the dump is then empty.
   */
  cleanup(signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Canonical, sorted, id-free text of the kernel's state, for people and golden tests: the same forwarding gives the same
   * text, independent of its history. May be called while an apply is under way; it then shows a state in between.
   */
  dump(signal: AbortSignal): Promise<string>;
  /** Optional abilities; the same value as long as the backend lives. */
  readonly observers: BackendObservers;
}

/** Optional abilities of a backend. An absent one is missing in the backend or in this kernel. */
export interface BackendObservers {
  /** Counters of every service in the kernel. May be called while an apply is under way. */
  readonly counters?: (signal: AbortSignal) => Promise<ReadonlyMap<ServicePortKey, ServiceCounters>>;
  /** Returns the numbers of rules by table from bookkeeping, without reading the kernel. */
  readonly ruleCounts?: () => readonly RuleCount[];
  /** Returns the fill levels of kernel maps from bookkeeping, without reading the kernel. */
  readonly mapFills?: () => readonly MapFill[];
  /**
   * Reports foreign changes of the objects of the backend until aborted, within a second where the kernel announces
   * them. The reconciler answers each with a `full` apply.
   */
  readonly drift?: (report: (drift: Drift) => void, signal: AbortSignal) => Promise<void>;
  readonly age?: RulesAge;
}

/** The age of the rules, kept in the kernel. Both may be called while an apply is under way and reject with `HostError`. */
export interface RulesAge {
  /** Notes in the kernel that its rules are correct now; one small write. */
  mark(signal: AbortSignal): Promise<void>;
  /** Returns the time since the last `mark` of any process, by the kernel's clock; undefined without a mark. */
  read(signal: AbortSignal): Promise<Millis | undefined>;
}

/** Fill level of one map of the kernel. */
export interface MapFill {
  /** `services`, `frontends`. */
  readonly map: string;
  /** Entries that are not available: in use, or just freed. */
  readonly entries: number;
  /** Number of entries that fit until the map is replaced by a larger one. */
  readonly capacity: number;
}

/** Number of rules of the backend in one table of the kernel. */
export interface RuleCount {
  /** `nat`, `filter`. */
  readonly table: string;
  /** Rules in the kernel. */
  readonly total: number;
  /** Rules that the last apply wrote. */
  readonly last: number;
}

/** Whether this host can run a backend, or the reasons why not, for the operator. */
export type ProbeResult =
  | { readonly status: 'usable'; readonly capabilities: BackendCapabilities }
  | { readonly status: 'unusable'; readonly reasons: readonly string[] };

/** Registration of a backend by an app, imported lazily. */
export interface DataplaneBackendFactory<Host> {
  readonly name: string;
  probe(host: Host, signal: AbortSignal): Promise<ProbeResult>;
  open(host: Host, ipFamily: IpFamily, signal: AbortSignal): Promise<DataplaneBackend>;
}
