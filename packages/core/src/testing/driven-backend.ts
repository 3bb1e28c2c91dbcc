import { diffTables } from '../forwarding/diff-tables.ts';
import type { ForwardingTable } from '../forwarding/forwarding-table.ts';
import type { ApplyOutcome, DataplaneBackend } from '../reconcile/dataplane-backend.ts';

/** A backend, and the last table given to it. */
export class DrivenBackend {
  readonly backend: DataplaneBackend;
  #last: ForwardingTable | undefined;

  constructor(backend: DataplaneBackend) {
    this.backend = backend;
  }

  /** Reads the kernel back and applies. */
  async full(table: ForwardingTable): Promise<ApplyOutcome> {
    this.#last = table;
    return this.backend.apply({ table, scope: { kind: 'full' } }, new AbortController().signal);
  }

  /** Applies what is different from the last table. */
  async next(table: ForwardingTable): Promise<ApplyOutcome> {
    const delta = diffTables(this.#last, table);
    this.#last = table;
    return this.backend.apply({ table, scope: { kind: 'delta', delta } }, new AbortController().signal);
  }
}
