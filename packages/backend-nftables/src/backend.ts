import {
  type ApplyOutcome,
  type ApplyRequest,
  type BackendCapabilities,
  type Clock,
  type DataplaneBackend,
  type ForwardingTable,
  HostError,
  InvariantError,
  type IpFamily,
  type Logger,
  type Millis,
  millis,
  type ServiceCounters,
  ServiceCounts,
  type ServicePortKey,
  systemClock,
  type TableDelta,
} from '@switchyard/core';
import { KernelState, readKernel } from './adopt.ts';
import { AppliedServices } from './applied-services.ts';
import { AppliedSettings } from './applied-settings.ts';
import { ClassPool } from './class-pool.ts';
import { type ChangeGroup, commitGroups, type CommitResult } from './commit.ts';
import { countElements } from './count-elements.ts';
import { dumpKernel } from './dump.ts';
import type { ElementId } from './elements.ts';
import { leftoverGroups } from './leftovers.ts';
import { suffixOf, type TableName, type TableNames, tableNames } from './names.ts';
import { NftError } from './nft-error.ts';
import { orderChanges } from './order-changes.ts';
import { exactSlotCounts, preloadedSlotCounts } from './slots.ts';
import { readCounts } from './read-counts.ts';
import { ensureTable, findTables, removeFamily, type TableGround } from './tables.ts';
import type { NftTransport } from './transport.ts';

/** What this backend needs of the machine. */
export interface NftablesHost {
  readonly logger: Logger;
  /** Path of the network namespace to be programmed; default: the process's own. */
  readonly netns?: string;
  /** For durations in the log; default: the machine's. */
  readonly clock?: Clock;
  /** Names of the nft table, for who uses this backend as a library beside the nftables mode's; default: that mode's. */
  readonly tableNames?: TableNames;
  /** Opens the way to the kernel; default: a netlink socket. Tests give another kernel. */
  readonly openTransport?: () => NftTransport;
}

/** The backend's capabilities. Session affinity needs rules that are made at run time. */
export function capabilitiesOf({ canAddClasses }: Pick<NftTransport, 'canAddClasses'>): BackendCapabilities {
  return { usesKernelConntrack: true, sessionAffinity: canAddClasses, sourceRanges: true, minSyncPeriod: millis(0) };
}

/** Changes per transaction: while the kernel takes them nothing else runs. */
const changesPerTransaction = 5000;

/** Drives one IP family of the nftables rule set. */
export class NftablesBackend implements DataplaneBackend {
  readonly name = 'nftables';
  readonly ipFamily: IpFamily;
  readonly capabilities: BackendCapabilities;
  /** Absent where the transport has nobody to keep the rules. */
  readonly watchDrift?: NonNullable<DataplaneBackend['watchDrift']>;
  readonly #transport: NftTransport;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #names: TableNames;
  readonly #classes: ClassPool;
  readonly #services: AppliedServices;
  readonly #counts: ServiceCounts = new ServiceCounts();
  readonly #settings = new AppliedSettings();
  /** The table we write to; undefined when what is in the kernel is not known. */
  #table: TableName | undefined;
  /** Tables of other builds, to be emptied once ours holds everything. */
  #others: readonly TableName[] = [];

  /** `transport` is disposed with the backend. */
  constructor(host: NftablesHost, transport: NftTransport, ipFamily: IpFamily) {
    this.ipFamily = ipFamily;
    this.#transport = transport;
    this.#logger = host.logger;
    this.#clock = host.clock ?? systemClock;
    this.#names = host.tableNames ?? tableNames;
    this.capabilities = capabilitiesOf(transport);
    const suffix = suffixOf(ipFamily);
    const { keeper } = transport;
    if (keeper !== undefined) {
      this.watchDrift = (report, signal) =>
        keeper.watch({ suffix, clock: this.#clock, tables: this.#names }, report, signal);
    }
    const exactLimit = transport.canAddClasses ? exactSlotCounts : preloadedSlotCounts;
    this.#classes = new ClassPool(suffix);
    this.#services = new AppliedServices({
      suffix,
      exactLimit,
      hasAffinity: transport.canAddClasses,
      classes: this.#classes,
    });
  }

  async apply(request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
    const { table, scope } = request;
    try {
      if (scope.kind === 'delta' && this.#table !== undefined) {
        const outcome = await this.#applyDelta(table, scope.delta, signal);
        if (outcome !== undefined) return outcome;
      }
      return await this.#applyFull(table, scope.kind === 'full' && scope.leftovers === 'stay', signal);
    } catch (error) {
      this.#table = undefined;
      signal.throwIfAborted();
      if (error instanceof HostError) return { status: 'failed', error };
      throw error;
    }
  }

  async cleanup(signal: AbortSignal): Promise<readonly string[]> {
    this.#table = undefined;
    const { current, others } = await findTables(this.#ground, signal);
    const removed: string[] = [];
    for (const table of current === undefined ? others : [current, ...others]) {
      const what = await removeFamily(this.#transport, table, this.ipFamily, signal);
      if (what !== undefined) removed.push(what);
    }
    return removed;
  }

  async dump(signal: AbortSignal): Promise<string> {
    const { current, others } = await findTables(this.#ground, signal);
    const table = others.find((name) => name === this.#table) ?? current;
    if (table === undefined) return '';
    const kernel = await this.#read(table, signal);
    const classes = await this.#transport.readClasses(table, suffixOf(this.ipFamily), signal);
    return dumpKernel({ kernel, classes, family: this.ipFamily }, signal);
  }

  /** Takes 3 to 4 ms per 1,000 frontends over netlink, most of it in the kernel. May be called while an apply is under way. */
  async counters(signal: AbortSignal): Promise<ReadonlyMap<ServicePortKey, ServiceCounters>> {
    const table = this.#table;
    if (table === undefined) return this.#counts.latest;
    this.#counts.beginReading();
    const suffix = suffixOf(this.ipFamily);
    const reading = await readCounts(this.#transport, table, suffix, signal);
    if (reading === undefined) return this.#counts.latest;
    const isKnown = (key: ServicePortKey): boolean => this.#services.has(key);
    return countElements(this.#counts, { services: this.#services.placed(), reading, suffix, isKnown });
  }

  /** A heartbeat that fails is one less: whatever is wrong with the table, drift and applies find it. */
  async markReconciled(signal: AbortSignal): Promise<void> {
    const table = this.#table;
    if (table === undefined) throw new HostError('nftables.heartbeat', 'cannot mark the rules as right: no apply yet');
    const heartbeat = { table, suffix: suffixOf(this.ipFamily), now: this.#clock.now() };
    await this.#transport.writeHeartbeat(heartbeat, signal);
  }

  async unreconciledFor(signal: AbortSignal): Promise<Millis | undefined> {
    const suffix = suffixOf(this.ipFamily);
    let youngest: Millis | undefined;
    // Also tables of other builds: they are what forwards until the first apply.
    for (const table of this.#names) {
      const age = await this.#transport.readHeartbeat({ table, suffix }, signal);
      if (age !== undefined && (youngest === undefined || age < youngest)) youngest = age;
    }
    return youngest;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#table = undefined;
    await this.#transport[Symbol.asyncDispose](); // forwarding stays
  }

  get #ground(): TableGround {
    return { transport: this.#transport, names: this.#names };
  }

  /** Undefined when the kernel turned out to hold something else than we thought. */
  async #applyDelta(table: ForwardingTable, delta: TableDelta, signal: AbortSignal): Promise<ApplyOutcome | undefined> {
    const { groups, broken } = this.#services.planDelta(delta, table.services);
    const settings = delta.settingsChanged ? this.#settings.plan(table) : undefined;
    try {
      const result = await this.#commit(settings === undefined ? groups : [...groups, settings], 'delta', signal);
      return await this.#finish(broken, result, signal);
    } catch (error) {
      if (error !== drifted) throw error;
      this.#logger.warn('the kernel differs from what was written; reading it back', { ipFamily: this.ipFamily });
      return undefined;
    }
  }

  async #applyFull(table: ForwardingTable, leftoversStay: boolean, signal: AbortSignal): Promise<ApplyOutcome> {
    const { table: name, others, isNew } = await ensureTable(this.#ground, signal);
    this.#classes.reset(await this.#transport.readClasses(name, suffixOf(this.ipFamily), signal));
    const kernel = isNew ? new KernelState() : await this.#read(name, signal);
    this.#settings.adopt(kernel.settings);
    if (isNew) this.#services.clear();
    const found = isNew ? [] : this.#services.adopt(kernel, table.services);
    const leftovers = leftoversStay ? [] : found;
    this.#table = name;
    this.#others = leftoversStay ? [] : others;
    const broken = new Map<ServicePortKey, Error>();
    const result = await this.#commit(this.#everything(table, broken, leftovers), 'full', signal);
    return this.#finish(broken, result, signal);
  }

  #read(table: TableName, signal: AbortSignal): Promise<KernelState> {
    return readKernel({ transport: this.#transport, table, family: this.ipFamily, clock: this.#clock }, signal);
  }

  /** Services, settings, and last what nobody wants. */
  *#everything(
    table: ForwardingTable,
    broken: Map<ServicePortKey, Error>,
    leftovers: readonly ElementId[],
  ): Generator<ChangeGroup, undefined, unknown> {
    yield* this.#services.planFull(table.services, broken);
    const settings = this.#settings.plan(table);
    if (settings !== undefined) yield settings;
    yield* leftoverGroups(leftovers, { classes: this.#classes, limit: changesPerTransaction });
    return undefined;
  }

  /** Throws `drifted` when a delta hits what is not as it was left, and `HostError` when the table is no longer there. */
  #commit(groups: Iterable<ChangeGroup>, scope: 'delta' | 'full', signal: AbortSignal): Promise<CommitResult> {
    return commitGroups(groups, {
      limit: changesPerTransaction,
      pause: () => this.#clock.sleep(millis(0), signal),
      send: async (some) => {
        try {
          await this.#send(some, signal);
        } catch (error) {
          const refusal = error instanceof NftError ? error.refusal : undefined;
          if (scope === 'delta' && (refusal === 'missing' || refusal === 'exists')) throw drifted;
          // No Service is at fault then, and none is to be named.
          if (refusal === 'missing' && (await this.#isGone(signal))) throw vanished(error);
          throw error;
        }
      },
    });
  }

  async #isGone(signal: AbortSignal): Promise<boolean> {
    return this.#table !== undefined && (await this.#transport.findTable(this.#table, signal)) === undefined;
  }

  async #send(groups: readonly ChangeGroup[], signal: AbortSignal): Promise<void> {
    const table = this.#table;
    if (table === undefined) throw new InvariantError('changes are written before there is a table');
    const changes = orderChanges(groups, this.#classes);
    const start = this.#clock.monotonic();
    const attempt = `cannot write ${changes.length} changes to table inet ${table}`;
    await this.#transport.write(attempt, { table, changes }, signal);
    for (const change of changes) {
      if (change.kind === 'class') this.#classes.markAdded(change.handleClass);
      else if (change.kind === 'delete') this.#counts.noteDeleted(change.id);
    }
    const duration = this.#clock.monotonic() - start;
    this.#logger.trace('transaction', { ipFamily: this.ipFamily, changes: changes.length, duration });
  }

  async #finish(
    broken: ReadonlyMap<ServicePortKey, Error>,
    { writes, failed }: CommitResult,
    signal: AbortSignal,
  ): Promise<ApplyOutcome> {
    const failedServices = new Map<ServicePortKey, Error>(broken);
    for (const { owner, error } of failed) {
      if (owner.kind !== 'services') {
        this.#table = undefined;
        return { status: 'failed', error };
      }
      for (const key of owner.keys) failedServices.set(key, error);
    }
    if (failed.length === 0) await this.#removeOthers(signal);
    return failedServices.size > 0
      ? { status: 'partial', writes, failed: failedServices }
      : { status: 'applied', writes };
  }

  /**
   * Not while the kernel refuses something that may go well in a second: another table may still forward it. A Service
   * that cannot be rendered is nothing to wait for: the other table may be one that somebody damaged.
   */
  async #removeOthers(signal: AbortSignal): Promise<void> {
    for (const table of this.#others) await removeFamily(this.#transport, table, this.ipFamily, signal);
    this.#others = [];
  }
}

function vanished(cause: unknown): HostError {
  const message = 'cannot write the rest of the rules: somebody deleted our table meanwhile; all is written again';
  return new HostError('nftables.vanished', message, { cause });
}

/** The kernel does not hold what was written: it is read back. */
const drifted = new HostError('nftables.drift', 'the kernel differs from what was written');
