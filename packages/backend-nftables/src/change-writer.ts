import { type Clock, HostError, type IpFamily, type Logger, millis, type ServiceCounts } from '@switchyard/core';
import {
  type ChangeGroup,
  type GroupWriter,
  KernelDiffersError,
  type PlannedGroup,
  type WriteResult,
} from '@switchyard/core/engine';
import type { ClassPool } from './class-pool.ts';
import type { Change } from './elements.ts';
import type { TableName } from './names.ts';
import { NftError } from './nft-error.ts';
import { orderChanges } from './order-changes.ts';
import type { NftTransport } from './transport.ts';

/** Changes of one transaction. */
export interface ElementGroup extends ChangeGroup {
  readonly changes: readonly Change[];
}

/** Changes per transaction. The kernel runs nothing else while it takes one. */
export const changesPerTransaction = 5000;

/** The parts of the backend that writes use. */
export interface ChangeWriterOptions {
  readonly transport: NftTransport;
  readonly table: TableName;
  readonly ipFamily: IpFamily;
  readonly classes: ClassPool;
  readonly counts: ServiceCounts;
  readonly clock: Clock;
  readonly logger: Logger;
  /** In a delta, an element that is missing or exists already means that the kernel differs from the record. */
  readonly scope: 'delta' | 'full';
}

/** Writes groups as netlink transactions, which the kernel takes as a whole or not at all. */
export class ChangeWriter implements GroupWriter<ElementGroup, Change> {
  readonly limit: number = changesPerTransaction;
  readonly refusalBudget = 200;
  readonly #options: ChangeWriterOptions;

  constructor(options: ChangeWriterOptions) {
    this.#options = options;
  }

  plan({ changes }: ElementGroup): readonly Change[] {
    return changes;
  }

  weigh({ length }: readonly Change[]): number {
    return length;
  }

  async write(
    planned: readonly PlannedGroup<ElementGroup, Change>[],
    signal: AbortSignal,
  ): Promise<WriteResult<ElementGroup>> {
    try {
      await this.#send(planned, signal);
      return { status: 'written', writes: planned.reduce((sum, { changes }) => sum + changes.length, 0) };
    } catch (error) {
      if (!(error instanceof NftError) || error.refusal === 'permission') throw error;
      await this.#throwIfOther(error, signal);
      const { change } = error;
      const group = change && planned.find(({ changes }) => changes.includes(change))?.group;
      return { status: 'refused', writes: 0, error, group };
    }
  }

  pause(signal: AbortSignal): Promise<void> {
    return this.#options.clock.sleep(millis(0), signal);
  }

  sleep(...wait: Parameters<Clock['sleep']>): Promise<void> {
    return this.#options.clock.sleep(...wait);
  }

  async #send(planned: readonly PlannedGroup<ElementGroup, Change>[], signal: AbortSignal): Promise<void> {
    const { transport, table, ipFamily, classes, counts, clock, logger } = this.#options;
    const changes = orderChanges(planned, classes);
    const start = clock.monotonic();
    await transport.write(`cannot write ${changes.length} changes to table inet ${table}`, { table, changes }, signal);
    for (const change of changes) {
      if (change.kind === 'class') classes.markAdded(change.handleClass);
      else if (change.kind === 'delete') counts.noteDeleted(change.id);
    }
    logger.trace('transaction', { ipFamily, changes: changes.length, duration: clock.monotonic() - start });
  }

  /** Throws when the refusal is the fault of no group: the kernel differs from the record, or the table is gone. */
  async #throwIfOther(error: NftError, signal: AbortSignal): Promise<void> {
    const { refusal } = error;
    const { scope, transport, table } = this.#options;
    if (scope === 'delta' && (refusal === 'missing' || refusal === 'exists')) {
      throw new KernelDiffersError(`an element is ${refusal}, which was recorded otherwise`, { cause: error });
    }
    if (refusal === 'missing' && (await transport.findTable(table, signal)) === undefined) {
      const message = 'cannot write the rest of the rules: another process deleted the table; rewriting everything';
      throw new HostError('nftables.vanished', message, { cause: error });
    }
  }
}
