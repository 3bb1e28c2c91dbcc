import type { DataplaneBackend } from '@switchyard/core/engine';
import type { DataplaneTraits, Flow, IpAddress, IpFamily, Random } from '@switchyard/core';
import type { Observation } from './verdict.ts';

/** A dataplane backend over a fake kernel, as `runOnBackend` and the contract suite drive it. */
export interface BackendHarness {
  /** Name of the backend and of its golden files. */
  readonly name: string;
  /** Traits that decide the expected results. */
  readonly dataplane: DataplaneTraits;
  /** Creates an empty kernel that is not shared. */
  createKernel(): FakeKernel;
}

/** A kernel without packets: it accepts the writes of a backend and predicts what it would do with a packet. */
export interface FakeKernel {
  /** A new instance of the backend over this kernel, as a started agent opens it. */
  open(ipFamily: IpFamily, signal: AbortSignal): Promise<DataplaneBackend>;
  /**
   * Returns the outcome of the first packet of a flow, over all random choices. `masquerade` is that of the endpoints that are
   * not the sender, or of the sender if there is no other. Throws if it depends on chance.
   */
  trace(flow: Flow): Observation;
  /**
   * As `trace`, for a client that used this endpoint before, if the Service has session affinity. Absent if the fake kernel has no
   * affinity state; undefined if it has none for this flow.
   */
  traceReturning?(flow: Flow, endpoint: IpAddress): Observation | undefined;
  /** Makes this share of all valid transactions fail; 0 for none. */
  injectFailures(rate: number, random: Random): void;
  /** Makes the kernel refuse writes with this address; undefined accepts everything again. */
  refuse(address: string | undefined): void;
  /** Whether the kernel has no state of the backend. */
  isEmpty(): boolean;
}
