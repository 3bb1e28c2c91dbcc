import { type ForwardingTable, type Millis, seconds, type ServiceForwarding } from '@switchyard/core';
import type { Restore } from './recording-runner.ts';

/** What programs the kernel: our backend, or kube-proxy's content fed to the same iptables. A whole table first, single Services afterwards. */
export interface Dataplane extends AsyncDisposable {
  /** Everything; undefined: it did not end within the time. */
  load(table: ForwardingTable): Promise<number | undefined>;
  /** One Service of it. */
  change(service: ServiceForwarding): Promise<void>;
  /** What was restored since the last call. */
  taken(): readonly Restore[];
}

/** After this long nobody waits any more for a first load. */
export const patience: Millis = seconds(60);
