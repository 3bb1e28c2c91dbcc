import {
  type ApplyOutcome,
  type ApplyRequest,
  type Clock,
  type ForwardingTable,
  InvariantError,
  type IpFamily,
  type Logger,
  type ServiceCounts,
  type ServicePortKey,
  type TableDelta,
} from '@switchyard/core';
import { type AppliedState, commitGroups, noResult, outcomeOf } from '@switchyard/core/engine';
import { KernelState, readKernel } from './adopt.ts';
import { AppliedServices } from './applied-services.ts';
import { AppliedSettings } from './applied-settings.ts';
import { changesPerTransaction, ChangeWriter, type ElementGroup } from './change-writer.ts';
import { ClassPool } from './class-pool.ts';
import type { ElementId } from './elements.ts';
import { leftoverGroups } from './leftovers.ts';
import { suffixOf, type TableName, type TableNames } from './names.ts';
import { exactSlotCounts, preloadedSlotCounts } from './slots.ts';
import { ensureTable, removeFamily } from './tables.ts';
import type { NftTransport } from './transport.ts';

/** The parts of the backend that the record uses. */
export interface AppliedTableOptions {
  readonly transport: NftTransport;
  readonly ipFamily: IpFamily;
  readonly names: TableNames;
  readonly counts: ServiceCounts;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The record of one family of our nftables table, and the changes that make it match a forwarding table. */
export class AppliedTable implements AppliedState {
  readonly services: AppliedServices;
  readonly #options: AppliedTableOptions;
  readonly #classes: ClassPool;
  readonly #settings = new AppliedSettings();
  #table: TableName | undefined;
  /** Tables of other builds, to be emptied once ours holds everything. */
  #others: readonly TableName[] = [];

  constructor(options: AppliedTableOptions) {
    const { transport, ipFamily } = options;
    const suffix = suffixOf(ipFamily);
    const hasAffinity = transport.canAddClasses;
    const exactLimit = hasAffinity ? exactSlotCounts : preloadedSlotCounts;
    this.#options = options;
    this.#classes = new ClassPool(suffix);
    this.services = new AppliedServices({ suffix, exactLimit, hasAffinity, classes: this.#classes });
  }

  /** The table that is written to; undefined when it is not recorded what it holds. */
  get name(): TableName | undefined {
    return this.#table;
  }

  get isKnown(): boolean {
    return this.#table !== undefined;
  }

  forget(): void {
    this.#table = undefined;
  }

  applyDelta(table: ForwardingTable, delta: TableDelta, signal: AbortSignal): Promise<ApplyOutcome> {
    const { groups, broken } = this.services.planDelta(delta, table.services);
    const settings = delta.settingsChanged ? this.#settings.plan(table) : undefined;
    const all = settings === undefined ? groups : [...groups, settings];
    return this.#commit({ groups: all, broken, scope: 'delta' }, signal);
  }

  async applyFull({ table, scope }: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
    const keepsStale = scope.kind === 'full' && scope.leftovers === 'stay';
    const { transport, names, ipFamily } = this.#options;
    const { table: name, others, isNew } = await ensureTable({ transport, names }, signal);
    this.#classes.reset(await transport.readClasses(name, suffixOf(ipFamily), signal));
    const kernel = isNew ? new KernelState() : await this.read(name, signal);
    this.#settings.adopt(kernel.settings);
    if (isNew) this.services.clear();
    const found = isNew ? [] : this.services.adopt(kernel, table.services);
    this.#table = name;
    this.#others = keepsStale ? [] : others;
    const broken = new Map<ServicePortKey, Error>();
    const groups = this.#everything(table, broken, keepsStale ? [] : found);
    return this.#commit({ groups, broken, scope: 'full' }, signal);
  }

  read(table: TableName, signal: AbortSignal): Promise<KernelState> {
    const { transport, ipFamily, clock } = this.#options;
    return readKernel({ transport, table, family: ipFamily, clock }, signal);
  }

  /** Services, settings, and last the stale objects. */
  *#everything(
    table: ForwardingTable,
    broken: Map<ServicePortKey, Error>,
    stale: readonly ElementId[],
  ): Generator<ElementGroup, undefined, unknown> {
    yield* this.services.planFull(table.services, broken);
    const settings = this.#settings.plan(table);
    if (settings !== undefined) yield settings;
    yield* leftoverGroups(stale, { classes: this.#classes, limit: changesPerTransaction });
    return undefined;
  }

  async #commit(work: Work, signal: AbortSignal): Promise<ApplyOutcome> {
    if (this.#table === undefined) throw new InvariantError('changes are written before there is a table');
    const result = noResult();
    const writer = new ChangeWriter({
      ...this.#options,
      table: this.#table,
      classes: this.#classes,
      scope: work.scope,
    });
    await commitGroups(work.groups, { writer, result }, signal);
    const [unremoved] = result.unremoved;
    if (unremoved !== undefined) throw unremoved; // the next apply reads the kernel back
    if (result.failed.size === 0) await this.#removeOthers(signal);
    for (const [key, error] of work.broken) result.failed.set(key, error);
    return outcomeOf(result);
  }

  /**
   * Not called while the kernel refuses a Service: a table of another build may still forward it. A Service that cannot
   * be rendered keeps no other table alive, which may be one that another process damaged.
   */
  async #removeOthers(signal: AbortSignal): Promise<void> {
    const { transport, ipFamily } = this.#options;
    for (const table of this.#others) await removeFamily(transport, table, ipFamily, signal);
    this.#others = [];
  }
}

interface Work {
  readonly groups: Iterable<ElementGroup>;
  /** Services that cannot be rendered; may be filled while `groups` are taken. */
  readonly broken: ReadonlyMap<ServicePortKey, Error>;
  readonly scope: 'delta' | 'full';
}
