import type { IpFamily } from '../ip/address.ts';
import type { ServicePortKey } from '../records/keys.ts';
import type { Millis } from '../time.ts';
import type { ForwardingTable, TableDelta } from '../forwarding/forwarding-table.ts';

/** Result of one `apply`. Expected failure is a value. */
export type ApplyOutcome =
  | { readonly status: 'applied'; readonly writes: number }
  /** Everything else is in the kernel; the named services are not and stay dirty. */
  | { readonly status: 'partial'; readonly writes: number; readonly failed: ReadonlyMap<ServicePortKey, Error> }
  /** Nothing was changed, or what was changed is unknown: the next apply must be `full`. */
  | { readonly status: 'failed'; readonly error: Error; readonly retryAfter?: Millis };

/** One request to make the kernel match a table. */
export interface ApplyRequest {
  readonly table: ForwardingTable;
  /** `full`: read the kernel back first. `delta`: trust what the previous apply left. */
  readonly scope: { readonly kind: 'full' } | { readonly kind: 'delta'; readonly delta: TableDelta };
}

/** What a backend can do, stated rather than probed by method existence. */
export interface BackendCapabilities {
  /** Forwarding uses kernel conntrack, so stale UDP flows must be removed after endpoint changes. */
  readonly usesKernelConntrack: boolean;
  readonly sessionAffinity: boolean;
  readonly sourceRanges: boolean;
  /** The backend's own floor between two applies. */
  readonly minSyncPeriod: Millis;
}

/** One instance drives one IP family. Calls never overlap. Disposal leaves forwarding in place. */
export interface DataplaneBackend extends AsyncDisposable {
  readonly name: string;
  readonly ipFamily: IpFamily;
  readonly capabilities: BackendCapabilities;
  /** Make the kernel match the table. Idempotent; safe to abort; must not throw for kernel refusals. */
  apply(request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome>;
  /** Remove all state any version of this backend may have left in this family. Needs no table and no memory. */
  cleanup(signal: AbortSignal): Promise<void>;
  /** Canonical, sorted, id-free text of what is in the kernel: for people and golden tests. */
  dump(signal: AbortSignal): Promise<string>;
}

/** Whether this host can run a backend, and if not, why, in words for the operator. */
export type ProbeResult =
  | { readonly status: 'usable'; readonly capabilities: BackendCapabilities }
  | { readonly status: 'unusable'; readonly reasons: readonly string[] };

/** What an app registers: one record per backend, imported lazily. */
export interface DataplaneBackendFactory<Host> {
  readonly name: string;
  probe(host: Host, signal: AbortSignal): Promise<ProbeResult>;
  open(host: Host, ipFamily: IpFamily, signal: AbortSignal): Promise<DataplaneBackend>;
}
