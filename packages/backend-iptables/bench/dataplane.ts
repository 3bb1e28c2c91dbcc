import { type ForwardingTable, type Millis, seconds, type ServiceForwarding } from '@switchyard/core';
import type { Restore } from './recording-runner.ts';

/** A programmer of the kernel: this backend, or kube-proxy's content fed to the same iptables. A whole table first, single Services afterwards. */
export interface Dataplane extends AsyncDisposable {
  /** Everything; undefined: it did not end within the time. */
  load(table: ForwardingTable): Promise<number | undefined>;
  /** One Service of it. */
  change(service: ServiceForwarding): Promise<void>;
  /** Restores since the last call. */
  taken(): readonly Restore[];
}

/** Time limit of a first load. */
export const patience: Millis = seconds(60);
