import {
  type ApplyRequest,
  type CommitResult,
  type Driver,
  type DriverRun,
  type GroupWriter,
  KernelDiffersError,
  type PlannedGroup,
  type ServiceCounts,
  type ServiceTracker,
  type WriteResult,
} from '@switchyard/core/engine';
import {
  type Clock,
  type ForwardingTable,
  HostError,
  InvariantError,
  type IpFamily,
  type Logger,
} from '@switchyard/core';
import { KernelState, readKernel } from './adopt.ts';
import { AppliedSettings } from './applied-settings.ts';
import { ClassPool } from './class-pool.ts';
import type { Change, ElementId } from '../render/elements.ts';
import { NftError } from './nft-error.ts';
import { orderChanges } from './order-changes.ts';
import { suffixOf, type TableName, type TableNames } from '../render/names.ts';
import { exactSlotCounts, preloadedSlotCounts } from '../render/place-service.ts';
import { type ElementGroup, type HeldElements, ServiceElements } from './service-elements.ts';
import { staleElementGroups } from './stale-elements.ts';
import { ensureTable, removeFamily } from './tables.ts';
import type { NftTransport } from './transport.ts';

/** Changes per transaction. The kernel runs nothing else while it takes one. */
const changesPerTransaction = 5000;

type Planned = PlannedGroup<ElementGroup, Change>;

interface Target {
  readonly table: TableName;
  readonly scope: ApplyRequest['scope']['kind'];
}

/** The parts of the backend that the driver uses. */
export interface NftablesDriverOptions {
  readonly transport: NftTransport;
  readonly ipFamily: IpFamily;
  readonly names: TableNames;
  readonly counts: ServiceCounts;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tracker: ServiceTracker<HeldElements>;
}

/** Writes one family of our nftables table. Each write is one transaction of the kernel. */
export class NftablesDriver implements Driver<ElementGroup, Change>, GroupWriter<ElementGroup, Change> {
  readonly atomicity = 'transaction';
  readonly isBlocking = true;
  readonly limit: number = changesPerTransaction;
  readonly refusalBudget = 200;
  readonly clock: Clock;
  readonly #options: NftablesDriverOptions;
  readonly #classes: ClassPool;
  readonly #services: ServiceElements;
  readonly #settings = new AppliedSettings();
  #table: TableName | undefined;
  /** Of the apply under way. */
  #target: Target | undefined;
  /** Tables of other builds, to be emptied once ours holds everything. */
  #others: readonly TableName[] = [];

  constructor(options: NftablesDriverOptions) {
    const { transport, ipFamily, tracker } = options;
    const suffix = suffixOf(ipFamily);
    const hasAffinity = transport.canAddClasses;
    const exactLimit = hasAffinity ? exactSlotCounts : preloadedSlotCounts;
    this.#options = options;
    this.clock = options.clock;
    this.#classes = new ClassPool(suffix);
    this.#services = new ServiceElements({ suffix, exactLimit, hasAffinity, classes: this.#classes }, tracker);
  }

  /** The table that is written to; undefined when it is not recorded what it holds. */
  get name(): TableName | undefined {
    return this.#table;
  }

  forget(): void {
    this.#table = undefined;
  }

  async begin({ table, scope }: ApplyRequest, signal: AbortSignal): Promise<DriverRun<ElementGroup, Change>> {
    const isFull = scope.kind === 'full';
    const keepsStale = isFull && scope.stale === 'keep';
    const found = isFull ? await this.#readBack(table, signal) : [];
    this.#target = this.#table === undefined ? undefined : { table: this.#table, scope: scope.kind };
    if (keepsStale) this.#others = [];
    const hasSettings = isFull || scope.delta.settingsChanged;
    return {
      unknown: isFull ? new Set() : undefined,
      writer: this,
      before: () => [],
      services: (wishes) => (isFull ? this.#services.groups(wishes) : this.#services.joinedGroups(wishes)),
      after: () => (hasSettings ? this.#settings.groups(table) : []),
      stale: () =>
        keepsStale || found.length === 0 ? [] : staleElementGroups(found, this.#classes, changesPerTransaction),
      finish: ({ result }) => this.#finish(result, signal),
    };
  }

  weigh({ length }: readonly Change[]): number {
    return length;
  }

  /** Reads one family of a table; not recorded. */
  read(table: TableName, signal: AbortSignal): Promise<KernelState> {
    const { transport, ipFamily, clock } = this.#options;
    return readKernel({ transport, table, family: ipFamily, clock }, signal);
  }

  /** Adopts what the kernel holds. Returns the stale elements. */
  async #readBack(wanted: ForwardingTable, signal: AbortSignal): Promise<readonly ElementId[]> {
    const { transport, names, ipFamily } = this.#options;
    const { table, others, isNew } = await ensureTable({ transport, names }, signal);
    this.#classes.reset(await transport.readClasses(table, suffixOf(ipFamily), signal));
    const kernel = isNew ? new KernelState() : await this.read(table, signal);
    this.#settings.adopt(kernel.settings);
    if (isNew) this.#services.clear();
    const stale = isNew ? [] : this.#services.adopt(kernel, wanted.services);
    this.#table = table;
    this.#others = others;
    return stale;
  }

  /**
   * Empties tables of other builds, unless the kernel refused a Service: such a table may still forward it. A Service that
   * cannot be rendered keeps no other table alive, which may be one that another process damaged.
   */
  async #finish({ unremoved: [unremoved], refused }: CommitResult, signal: AbortSignal): Promise<void> {
    if (unremoved !== undefined) throw unremoved; // the next apply reads the kernel back
    if (refused > 0) return;
    const { transport, ipFamily } = this.#options;
    for (const table of this.#others) await removeFamily(transport, table, ipFamily, signal);
    this.#others = [];
  }

  async write(planned: readonly Planned[], signal: AbortSignal): Promise<WriteResult<ElementGroup>> {
    const target = this.#target;
    if (target === undefined) throw new InvariantError('changes are written before there is a table');
    try {
      await this.#send(planned, target.table, signal);
      return { status: 'written', writes: planned.reduce((sum, { changes }) => sum + changes.length, 0) };
    } catch (error) {
      if (!(error instanceof NftError) || error.refusal === 'permission') throw error;
      await this.#throwIfOther(error, target, signal);
      const { change } = error;
      const group = change && planned.find(({ changes }) => changes.includes(change))?.group;
      return { status: 'refused', writes: 0, error, group };
    }
  }

  async #send(planned: readonly Planned[], table: TableName, signal: AbortSignal): Promise<void> {
    const { transport, ipFamily, counts, clock, logger } = this.#options;
    const changes = orderChanges(planned, this.#classes);
    const start = clock.monotonic();
    await transport.write(`cannot write ${changes.length} changes to table inet ${table}`, { table, changes }, signal);
    for (const change of changes) {
      if (change.kind === 'class') this.#classes.markAdded(change.handleClass);
      else if (change.kind === 'delete') counts.noteDeleted(change.id);
    }
    logger.trace('transaction', { ipFamily, changes: changes.length, duration: clock.monotonic() - start });
  }

  /** Throws when the refusal is the fault of no group: the kernel differs from the record, or the table is gone. */
  async #throwIfOther(error: NftError, { table, scope }: Target, signal: AbortSignal): Promise<void> {
    const { refusal } = error;
    if (scope === 'delta' && (refusal === 'missing' || refusal === 'exists')) {
      throw new KernelDiffersError(`an element is ${refusal}, which was recorded otherwise`, { cause: error });
    }
    if (refusal === 'missing' && (await this.#options.transport.findTable(table, signal)) === undefined) {
      const message = 'cannot write the rest of the rules: another process deleted the table; rewriting everything';
      throw new HostError('nftables.vanished', message, { cause: error });
    }
  }
}
