import { type ApplyOutcome, type ApplyRequest, type DataplaneBackend, withFailed } from '@switchyard/core/engine';
import { diffTables, type ForwardingTable, InvariantError, type ServicePortKey } from '@switchyard/core';

/** At a failure rate of one in ten, more attempts than this are not chance. */
const maxAttempts = 60;

/** Cost of applying one table. */
export interface Applied {
  /** Element writes of all attempts. */
  readonly writes: number;
  readonly attempts: number;
}

/** Applies one table after another to a backend and retries failures, as the reconciler does. */
export class TableApplier {
  readonly #backend: DataplaneBackend;
  #applied: ForwardingTable | undefined;
  #failed: ReadonlyMap<ServicePortKey, Error> = new Map();

  constructor(backend: DataplaneBackend) {
    this.#backend = backend;
  }

  /** Resolves when the kernel has the table. Rejects with `InvariantError` after too many attempts. */
  async apply(table: ForwardingTable, signal: AbortSignal): Promise<Applied> {
    let writes = 0;
    for (let attempts = 1; attempts <= maxAttempts; attempts++) {
      const outcome = await this.attempt(table, signal);
      if (outcome.status !== 'failed') writes += outcome.writes;
      if (outcome.status === 'applied') return { writes, attempts };
    }
    throw new InvariantError(`${this.#backend.name} has not applied a table after ${maxAttempts} attempts`);
  }

  /** One attempt: a full apply at first and after a failure, otherwise the difference to the applied table. */
  async attempt(table: ForwardingTable, signal: AbortSignal): Promise<ApplyOutcome> {
    const outcome = await this.#backend.apply({ table, scope: this.#scopeOf(table) }, signal);
    this.#applied = outcome.status === 'failed' ? undefined : table;
    this.#failed = outcome.status === 'partial' ? outcome.failed : new Map();
    return outcome;
  }

  #scopeOf(table: ForwardingTable): ApplyRequest['scope'] {
    if (this.#applied === undefined) return { kind: 'full' };
    return { kind: 'delta', delta: withFailed(diffTables(this.#applied, table), table, this.#failed) };
  }
}
