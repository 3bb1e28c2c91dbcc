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
  millis,
  type ServiceForwarding,
  type ServicePortKey,
  systemClock,
} from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import { emptyKernel, readKernel, recoverPlaces } from './adopt.ts';
import { type ChangeGroup, commitGroups, type CommitResult } from './commit.ts';
import { dumpKernel } from './dump.ts';
import { type Owner, ElementTracker, orderChanges } from './element-tracker.ts';
import type { Change, Element } from './elements.ts';
import { IdPool } from './handles.ts';
import { type ObjectName, type TableName } from './names.ts';
import { NftError } from './nft-error.ts';
import { noSlots, renderService, type ServicePlace } from './render-service.ts';
import { renderSettings, settingChange } from './render-settings.ts';
import { ensureTable, findTables, removeFamily } from './tables.ts';
import type { NftTransport } from './transport.ts';

/** What this backend needs of the machine. */
export interface NftablesHost {
  /** Runs `nft`, in the network namespace to be programmed. */
  readonly runner: CommandRunner;
  readonly logger: Logger;
  /** How elements reach the kernel. `netlink` needs the native addon; `cli` runs `nft` for each transaction. */
  readonly transport: NftTransport['kind'];
  /** Path of the network namespace that `netlink` programs; default: the process's own. `runner` must run in the same. */
  readonly netns?: string;
  /** For durations in the log; default: the machine's. */
  readonly clock?: Clock;
}

/** What the backend can do by now. Session affinity has its place in the rules, not yet its elements. */
export const capabilities: BackendCapabilities = {
  usesKernelConntrack: true,
  sessionAffinity: false,
  sourceRanges: true,
  minSyncPeriod: millis(0),
};

/** Writes that belong to no service. */
const settingsOwner = 'settings';
type GroupOwner = Owner | typeof settingsOwner;

/** Drives one IP family of the nftables rule set. */
export class NftablesBackend implements DataplaneBackend {
  readonly name = 'nftables';
  readonly ipFamily: IpFamily;
  readonly capabilities: BackendCapabilities = capabilities;
  readonly #transport: NftTransport;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #tracker = new ElementTracker();
  readonly #ids = new IdPool();
  #places = new Map<ServicePortKey, ServicePlace>();
  /** Services that are gone but whose elements may still be in the kernel. */
  readonly #leaving = new Set<ServicePortKey>();
  #settings = new Map<ObjectName, string>();
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
  }

  async apply(request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
    try {
      const isFull = request.scope.kind === 'full' || this.#table === undefined;
      const outcome = isFull ? undefined : await this.#applyDelta(request, signal);
      return outcome ?? (await this.#applyFull(request.table, signal));
    } catch (error) {
      this.#table = undefined;
      signal.throwIfAborted();
      if (error instanceof HostError) return { status: 'failed', error };
      throw error;
    }
  }

  async cleanup(signal: AbortSignal): Promise<void> {
    this.#table = undefined;
    const { current, others } = await findTables(this.#transport, signal);
    for (const table of current === undefined ? others : [current, ...others]) {
      await removeFamily(this.#transport, table, this.ipFamily, signal);
    }
  }

  async dump(signal: AbortSignal): Promise<string> {
    const { current } = await findTables(this.#transport, signal);
    if (current === undefined) return '';
    return dumpKernel(await readKernel(this.#transport, current, this.ipFamily, signal), this.ipFamily);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#table = undefined;
    await this.#transport[Symbol.asyncDispose](); // forwarding stays
  }

  /** Undefined when the kernel turned out to hold something else than we thought. */
  async #applyDelta({ table, scope }: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome | undefined> {
    if (scope.kind === 'full') return undefined;
    const broken = this.#want(scope.delta.upserted, scope.delta.removed);
    const groups = this.#pendingGroups(table);
    let isDrifted = false;
    const result = await commitGroups(groups, async (changes) => {
      if (isDrifted) throw driftedBefore;
      try {
        await this.#send(changes, signal);
      } catch (error) {
        isDrifted = error instanceof NftError && (error.refusal === 'missing' || error.refusal === 'exists');
        throw error;
      }
    }).catch((error: unknown) => {
      if (error === driftedBefore) return undefined;
      throw error;
    });
    if (result !== undefined && !isDrifted) return this.#finish(broken, result, signal);
    this.#logger.warn('the kernel differs from what was written; reading it back', { ipFamily: this.ipFamily });
    return undefined;
  }

  async #applyFull(table: ForwardingTable, signal: AbortSignal): Promise<ApplyOutcome> {
    const { table: name, others, isNew } = await ensureTable(this.#transport, signal);
    const kernel = isNew ? emptyKernel : await readKernel(this.#transport, name, this.ipFamily, signal);
    const { places, usedIds } = recoverPlaces(kernel.elements, table.services, this.#places);
    this.#places = new Map(places);
    this.#ids.reset(usedIds);
    this.#settings = new Map([...kernel.settings].map(([object, content]) => [object, content.join(', ')]));
    this.#table = name;
    this.#others = others;
    const removed = [...this.#tracker.owners()].filter((key) => !table.services.has(key));
    const broken = this.#want([...table.services.values()], removed);
    this.#tracker.replaceActual(kernel.elements);
    const send = (changes: readonly Change[]): Promise<void> => this.#send(changes, signal);
    return this.#finish(broken, await commitGroups(this.#pendingGroups(table), send), signal);
  }

  /** Renders and claims. Returns services that cannot be rendered; what they had stays. */
  #want(upserted: readonly ServiceForwarding[], removed: readonly ServicePortKey[]): Map<ServicePortKey, Error> {
    const broken = new Map<ServicePortKey, Error>();
    const wanted = new Map<ServicePortKey, readonly Element[]>();
    for (const key of removed) {
      wanted.set(key, []);
      this.#leaving.add(key);
    }
    for (const service of upserted) {
      try {
        wanted.set(service.key, this.#render(service));
        this.#leaving.delete(service.key);
      } catch (error) {
        if (!(error instanceof HostError)) throw error;
        broken.set(service.key, error);
      }
    }
    this.#tracker.claim(wanted);
    return broken;
  }

  #render(service: ServiceForwarding): readonly Element[] {
    const place = this.#places.get(service.key) ?? { id: this.#newId(service.key), slots: noSlots };
    this.#places.set(service.key, place);
    const { elements, slots } = renderService(service, this.ipFamily, place);
    this.#places.set(service.key, { id: place.id, slots });
    return elements;
  }

  #newId(key: ServicePortKey): number {
    const id = this.#ids.allocate();
    if (id !== undefined) return id;
    throw new HostError('nftables.no-free-id', `cannot render ${key}: all service ids are taken; remove Services`);
  }

  /** Everything that is to be written: services, settings, and last what nobody wants. */
  #pendingGroups(table: ForwardingTable): readonly ChangeGroup<GroupOwner>[] {
    const pending = new Map(this.#tracker.pending());
    const leftovers = pending.get(undefined);
    pending.delete(undefined);
    const groups: ChangeGroup<GroupOwner>[] = [...pending].map(([owner, changes]) => ({ owner, changes }));
    const settings = renderSettings(table).filter(
      ({ object, content }) => (this.#settings.get(object) ?? '') !== content.join(', '),
    );
    if (settings.length > 0) groups.push({ owner: settingsOwner, changes: settings.map(settingChange) });
    if (leftovers !== undefined) groups.push({ owner: undefined, changes: leftovers });
    return groups;
  }

  async #send(changes: readonly Change[], signal: AbortSignal): Promise<void> {
    const table = this.#table;
    if (table === undefined) throw new InvariantError('changes are written before there is a table');
    const ordered = orderChanges(changes);
    const start = this.#clock.monotonic();
    const attempt = `cannot write ${changes.length} changes to table inet ${table}`;
    await this.#transport.write(attempt, { table, changes: ordered }, signal);
    this.#tracker.markApplied(ordered);
    for (const change of changes) {
      if (change.kind === 'replace') this.#settings.set(change.object, change.content.join(', '));
    }
    const duration = this.#clock.monotonic() - start;
    this.#logger.trace('transaction', { ipFamily: this.ipFamily, changes: changes.length, duration });
  }

  async #finish(
    broken: ReadonlyMap<ServicePortKey, Error>,
    { writes, failed }: CommitResult<GroupOwner>,
    signal: AbortSignal,
  ): Promise<ApplyOutcome> {
    this.#freeIds(failed);
    const failedServices = new Map<ServicePortKey, Error>(broken);
    for (const [owner, error] of failed) {
      if (owner === undefined || owner === settingsOwner) {
        this.#table = undefined;
        return { status: 'failed', error };
      }
      failedServices.set(owner, error);
    }
    if (failedServices.size > 0) return { status: 'partial', writes, failed: failedServices };
    for (const table of this.#others) await removeFamily(this.#transport, table, this.ipFamily, signal);
    this.#others = [];
    return { status: 'applied', writes };
  }

  #freeIds(failed: ReadonlyMap<GroupOwner, Error>): void {
    for (const key of this.#leaving) {
      if (failed.has(key)) continue;
      const place = this.#places.get(key);
      if (place !== undefined) this.#ids.free(place.id);
      this.#places.delete(key);
      this.#leaving.delete(key);
    }
  }
}

/** Ends the search for culprits early: reading back will tell more. */
const driftedBefore = new HostError('nftables.drift', 'the kernel differs from what was written');
