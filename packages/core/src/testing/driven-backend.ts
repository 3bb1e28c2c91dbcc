import { diffTables } from '../model/forwarding/build-table.ts';
import type { ForwardingTable } from '../model/forwarding/forwarding-table.ts';
import type { ServicePortKey } from '../model/records/keys.ts';
import type { ApplyOutcome, ApplyRequest, DataplaneBackend } from '../engine/dataplane-backend.ts';
import { withFailed } from '../engine/reconcile/large-services.ts';

/** A backend, and the last table given to it. */
export class DrivenBackend {
  readonly backend: DataplaneBackend;
  #last: ForwardingTable | undefined;
  #failed: ReadonlyMap<ServicePortKey, Error> = new Map();

  constructor(backend: DataplaneBackend) {
    this.backend = backend;
  }

  /** Reads the kernel back and applies. */
  full(table: ForwardingTable): Promise<ApplyOutcome> {
    return this.#apply(table, { kind: 'full' });
  }

  /** Applies what is different from the last table, and names the services again that failed. */
  next(table: ForwardingTable): Promise<ApplyOutcome> {
    const delta = withFailed(diffTables(this.#last, table), table, this.#failed);
    return this.#apply(table, { kind: 'delta', delta });
  }

  async #apply(table: ForwardingTable, scope: ApplyRequest['scope']): Promise<ApplyOutcome> {
    this.#last = table;
    const outcome = await this.backend.apply({ table, scope }, new AbortController().signal);
    this.#failed = outcome.status === 'partial' ? outcome.failed : new Map();
    return outcome;
  }
}
