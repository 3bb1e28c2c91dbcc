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
import { ClassPool, type ElementGroup, type HeldElements, ServiceElements } from './service-elements.ts';
import { type Change, type ElementId, handleClass } from '../render/elements.ts';
import { NftError } from './nft-error.ts';
import {
  elementObjects,
  type ObjectName,
  setMapOf,
  suffixOf,
  type TableName,
  type TableNames,
} from '../render/names.ts';
import { exactSlotCounts, preloadedSlotCounts } from '../render/place-service.ts';
import { ensureTable, removeFamily } from './tables.ts';
import type { NftTransport } from './transport.ts';
import { renderSettings } from '../render/render-settings.ts';

/** Changes per transaction. The kernel runs nothing else while it takes one. */
const changesPerTransaction = 5000;

/** Missing service ports from which on the kernel's notices of a load cost more than to look for foreign changes afterwards. */
const largeLoad = 1000;

type Planned = PlannedGroup<ElementGroup, Change>;

interface Target {
  readonly table: TableName;
  readonly scope: ApplyRequest['scope']['kind'];
}

export interface NftablesDriverOptions {
  readonly transport: NftTransport;
  readonly ipFamily: IpFamily;
  readonly names: TableNames;
  readonly counts: ServiceCounts;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tracker: ServiceTracker<HeldElements>;
}

/** Writes one family of our nftables table. Each write is one transaction of the kernel, with another one before or after it where `orderChanges` says so. */
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
  /** While a large load is under way. */
  #unwatched: Disposable | undefined;

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
    this.#watchAgain();
  }

  #watchAgain(): void {
    this.#unwatched?.[Symbol.dispose]();
    this.#unwatched = undefined;
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

  read(table: TableName, signal: AbortSignal): Promise<KernelState> {
    const { transport, ipFamily, clock } = this.#options;
    return readKernel({ transport, table, family: ipFamily, clock }, signal);
  }

  async #readBack(wanted: ForwardingTable, signal: AbortSignal): Promise<readonly ElementId[]> {
    const { transport, names, ipFamily } = this.#options;
    const { table, others, isNew } = await ensureTable({ transport, names }, signal);
    this.#classes.reset(await transport.readClasses(table, suffixOf(ipFamily), signal));
    const kernel = isNew ? new KernelState() : await this.read(table, signal);
    this.#settings.adopt(kernel.settings);
    if (isNew) this.#services.clear();
    const stale = isNew ? [] : this.#services.adopt(kernel, wanted.services);
    if (this.#isLarge(wanted)) this.#unwatched ??= transport.unwatched();
    this.#table = table;
    this.#others = others;
    return stale;
  }

  #isLarge({ services }: ForwardingTable): boolean {
    const missing = services.values().filter((service) => !this.#options.tracker.isApplied(service));
    return missing.drop(largeLoad - 1).some(() => true);
  }

  /** Empties tables of other builds unless the kernel refused a Service: such a table may still forward it. */
  async #finish({ unremoved: [unremoved], refused }: CommitResult, signal: AbortSignal): Promise<void> {
    this.#watchAgain();
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
    const { classes, changes, deletions } = orderChanges(planned, this.#classes);
    await this.#transact(classes, table, signal);
    await this.#transact(changes, table, signal);
    try {
      await this.#transact(deletions, table, signal);
    } catch (error) {
      if (!(error instanceof NftError) || error.refusal === 'permission') throw error;
      throw new KernelDiffersError('elements that nothing leads to any more cannot be deleted', { cause: error });
    }
  }

  async #transact(changes: readonly Change[], table: TableName, signal: AbortSignal): Promise<void> {
    if (changes.length === 0) return;
    const { transport, ipFamily, counts, clock, logger } = this.#options;
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

/** Deletes stale elements, those that point to others first, in groups of at most `limit` changes. */
export function* staleElementGroups(
  ids: readonly ElementId[],
  classes: ClassPool,
  limit: number,
): Generator<ElementGroup, undefined, unknown> {
  const deletes = ids.map((id): Change => ({ kind: 'delete', id }));
  const { changes: ordered } = orderChanges([{ changes: deletes }], classes);
  for (let start = 0; start < ordered.length; start += limit) {
    const changes = ordered.slice(start, start + limit);
    const owner = { kind: 'stale', what: `${changes.length} stale elements` } as const;
    yield { owner, plan: () => changes, settle: () => undefined };
  }
  return undefined;
}

type DeleteChange = Extract<Change, { readonly kind: 'delete' }>;

const objectCount = elementObjects.length;
/** Stage 0 makes classes; then per object first what is deleted to be added again, then what is added. */
const addStage = (rank: number): number => 2 + rank * 2;
const replaceStage = (rank: number): number => 1 + rank * 2;
const settingsStage = 1 + objectCount * 2;
const deleteStage = (rank: number): number => settingsStage + objectCount - rank;
const stageCount = settingsStage + objectCount + 1;

const ranks: ReadonlyMap<string, number> = new Map(
  elementObjects.flatMap((object, rank) => [[`${object}4`, rank] as const, [`${object}6`, rank] as const]),
);
/** Where what is added leads to a class. */
const handleStages: ReadonlySet<number> = new Set(
  elementObjects.flatMap((object, rank) => (Object.values<string>(setMapOf).includes(object) ? [addStage(rank)] : [])),
);

/** Allowed sources that overlap cannot be there together, so old ones go before new ones come. */
const rangeRank = elementObjects.indexOf('fw-allow');

/** Changes of one write, as transactions in this order; empty ones are omitted. */
interface Transactions {
  readonly classes: readonly Change[];
  readonly changes: readonly Change[];
  readonly deletions: readonly Change[];
}

/**
 * The one place that knows the order of writes. What is pointed to is added before what points to it
 * (classes, endpoints, sets, then frontends, then the cluster IPs that make unknown ports an error) and deleted
 * after it. A changed value is a delete and an add of one key. The order counts where a large load is split, and where a packet could be lost
 * between two look-ups.
 *
 * Each look-up of a packet reads the elements of its own moment, the rules are those of the packet's first moment. So one between two
 * look-ups finds a new class without its rules, and an old frontend without what was behind it. Classes are made before, and what a packet
 * may still need is deleted in a transaction of its own, when all packets read the new frontends. No deletions are split off where one
 * transaction will do: what only shrinks has another element that stands in, and what goes as a whole is refused before and after.
 *
 * Adds the changes that make needed but missing classes, once each. Neighbours that
 * add the same element write it once.
 */
export function orderChanges(
  groups: readonly { readonly changes: readonly Change[] }[],
  pool: ClassPool,
): Transactions {
  const lists = groups.map(({ changes }) => changes);
  const deleted = deletedIds(lists);
  const replaced = deleted === undefined ? undefined : replacedIds(lists, deleted);
  let hasNewRanges: boolean | undefined;
  const isNewRange = (change: Change): boolean => change.kind === 'add' && rankOf(change.id) === rangeRank;
  const comesFirst = ({ id }: DeleteChange): boolean => {
    if (replaced?.has(id) === true) return true;
    return rankOf(id) === rangeRank && (hasNewRanges ??= lists.some((list) => list.some(isNewRange)));
  };
  const stages: (Change[] | undefined)[] = Array.from({ length: stageCount });
  const needed = new Set<number>();
  for (const list of lists) {
    for (const change of list) {
      const at = stageOf(change, comesFirst);
      if (change.kind === 'class') needed.add(change.handleClass);
      else if (stages[at] === undefined) stages[at] = [change];
      else if (!isDouble(stages[at], change)) stages[at].push(change);
      if (change.kind === 'add' && handleStages.has(at)) needed.add(handleClass(Number(change.data)));
    }
  }
  const between = (from: number, to?: number): readonly Change[] =>
    stages.slice(from, to).flatMap((stage) => stage ?? []);
  const classes = [...needed].flatMap((handle) => pool.missing(handle) ?? []);
  const [changes, deletions] = [between(1, settingsStage + 1), between(settingsStage + 1)];
  const isSplit = changes.length > 0 && deletions.some((change) => change.kind === 'delete' && isAlone(change.id));
  return isSplit ? { classes, changes, deletions } : { classes, changes: [...changes, ...deletions], deletions: [] };
}

function stageOf(change: Change, comesFirst: (change: DeleteChange) => boolean): number {
  if (change.kind === 'class') return 0;
  if (change.kind === 'replace') return settingsStage;
  const rank = rankOf(change.id);
  if (change.kind === 'add') return addStage(rank);
  return comesFirst(change) ? replaceStage(rank) : deleteStage(rank);
}

/** Whether no other element stands in for one that a packet looks for. */
function isAlone(id: ElementId): boolean {
  const object = elementObjects[rankOf(id)];
  if (object === 'endpoints' || object === 'aff-slots') return id.endsWith(' . 0'); // the first slot stands in for all others
  return object === 'to-cluster' || object === 'to-local' || object === 'fw-allow';
}

/** Adjacent ports of one Service add the same cluster IP. */
function isDouble(stage: readonly Change[], change: Change): boolean {
  const last = stage.at(-1);
  return change.kind === 'add' && last?.kind === 'add' && last.id === change.id;
}

function deletedIds(lists: readonly (readonly Change[])[]): Set<ElementId> | undefined {
  let ids: Set<ElementId> | undefined;
  for (const list of lists) {
    for (const change of list) if (change.kind === 'delete') (ids ??= new Set()).add(change.id);
  }
  return ids;
}

function replacedIds(lists: readonly (readonly Change[])[], deleted: ReadonlySet<ElementId>): Set<ElementId> {
  const ids = new Set<ElementId>();
  for (const list of lists) {
    for (const change of list) if (change.kind === 'add' && deleted.has(change.id)) ids.add(change.id);
  }
  return ids;
}

function rankOf(id: ElementId): number {
  return ranks.get(id.slice(0, id.indexOf(' '))) ?? objectCount - 1;
}

class AppliedSettings {
  readonly #content = new Map<ObjectName, string>();

  /** Adopts what was read from the kernel; what is not named is empty. */
  adopt(settings: ReadonlyMap<ObjectName, readonly string[]>): void {
    this.#content.clear();
    for (const [object, content] of settings) this.#content.set(object, content.join(', '));
  }

  groups(table: ForwardingTable): readonly ElementGroup[] {
    const changes = renderSettings(table).filter(
      ({ object, content }) => (this.#content.get(object) ?? '') !== content.join(', '),
    );
    const settle = (isApplied: boolean): void => {
      if (!isApplied) return;
      for (const { object, content } of changes) this.#content.set(object, content.join(', '));
    };
    return [{ owner: { kind: 'settings' }, plan: () => changes, settle }];
  }
}
