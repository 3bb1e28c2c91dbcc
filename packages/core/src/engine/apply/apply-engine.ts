import { requireFields, requireLogger, requireMethods } from '../../base/argument.ts';
import { DataplaneError, HostError, isExpected } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import {
  type ChangeGroup,
  type Driver,
  type DriverRun,
  type GroupWriter,
  KernelDiffersError,
  type PlannedGroup,
  type ServiceWish,
} from './driver.ts';
import type { ApplyOutcome, ApplyRequest, DataplaneBackend } from '../dataplane-backend.ts';
import type { ServiceForwarding, TableDelta } from '../../model/forwarding/forwarding-table.ts';
import { type IpFamily, requireIpFamily } from '../../model/ip/address.ts';
import type { ServicePortKey } from '../../model/records/keys.ts';
import { millis } from '../../base/time.ts';

/** One service port as the kernel holds it. */
export interface HeldService {
  /** The forwarding that is applied; undefined when the kernel's objects are unknown or differ from every rendering. */
  readonly service: ServiceForwarding | undefined;
}

/**
 * Record of the kernel by service port. A service port is applied when its wanted forwarding is the one held, unknown
 * when something is held and no forwarding is, and dirty otherwise. Follows only what was read or written.
 */
export class ServiceTracker<Held extends HeldService> {
  #held = new Map<ServicePortKey, Held>();

  /** Undefined for a service port that has nothing in the kernel. */
  get(key: ServicePortKey): Held | undefined {
    return this.#held.get(key);
  }

  /** Service ports that have objects in the kernel. */
  keys(): Iterable<ServicePortKey> {
    return this.#held.keys();
  }

  /** All records. */
  values(): Iterable<Held> {
    return this.#held.values();
  }

  /** Whether the kernel holds exactly this forwarding. */
  isApplied(service: ServiceForwarding): boolean {
    return this.#held.get(service.key)?.service === service;
  }

  /** Service ports whose record differs from `services`, removals last. `unknown`: service ports to include although they are applied. */
  *wishes(
    services: ReadonlyMap<ServicePortKey, ServiceForwarding>,
    unknown: ReadonlySet<ServicePortKey> | 'all',
  ): Generator<ServiceWish> {
    for (const service of services.values()) {
      const { key } = service;
      if (unknown === 'all' || unknown.has(key) || !this.isApplied(service)) yield { key, service };
    }
    for (const key of this.#held.keys()) if (!services.has(key)) yield { key, service: undefined };
  }

  /** Records the kernel's state of a service port; undefined: no objects. */
  set(key: ServicePortKey, held: Held | undefined): void {
    if (held === undefined) this.#held.delete(key);
    else this.#held.set(key, held);
  }

  /** Drops the record and returns it. */
  clear(): ReadonlyMap<ServicePortKey, Held> {
    const held = this.#held;
    this.#held = new Map();
    return held;
  }
}

/**
 * Brings the kernel to a table through a driver: first apply, full apply, delta, heal, retry and adoption are this one path,
 * which differs in the objects that are read first. Calls do not overlap; `createApply` gives the entry.
 */
export class ApplyEngine<Held extends HeldService, Group extends ChangeGroup<Change>, Change> implements AppliedState {
  readonly #driver: Driver<Group, Change>;
  readonly #tracker: ServiceTracker<Held>;
  #isKnown = false;

  /** `tracker` is the one that the driver fills. Throws `UsageError` for arguments of other types. */
  constructor(driver: Driver<Group, Change>, tracker: ServiceTracker<Held>) {
    requireMethods('ApplyEngine: driver', driver, ['begin', 'forget']);
    requireMethods('ApplyEngine: tracker', tracker, ['get', 'set', 'wishes']);
    this.#driver = driver;
    this.#tracker = tracker;
  }

  get isKnown(): boolean {
    return this.#isKnown;
  }

  forget(): void {
    this.#isKnown = false;
    this.#driver.forget();
  }

  async apply(request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
    const run = await this.#driver.begin(request, signal);
    this.#isKnown = true;
    const result = noResult();
    const commit = (groups: Iterable<Group>): Promise<void> =>
      commitGroups(groups, { writer: run.writer, result }, signal);
    await commit(this.#groups(request, run, result));
    await run.finish({ result, commit }, signal);
    return outcomeOf(result);
  }

  *#groups({ table, scope }: ApplyRequest, run: DriverRun<Group, Change>, result: CommitResult): Generator<Group> {
    yield* run.before();
    const { unknown } = run;
    const ofDelta = scope.kind === 'delta' ? wishesOf(scope.delta) : [];
    yield* run.services(unknown === undefined ? ofDelta : this.#tracker.wishes(table.services, unknown));
    yield* run.after();
    yield* run.stale(result);
  }
}

/** The service ports that a delta names, removals last. */
export function* wishesOf({ upserted, removed }: Pick<TableDelta, 'upserted' | 'removed'>): Generator<ServiceWish> {
  for (const service of upserted) yield { key: service.key, service };
  for (const key of removed) yield { key, service: undefined };
}

/** State of one backend, which an apply updates. */
export interface AppliedState {
  /** Whether the kernel's state is recorded, so that a delta can be written. */
  readonly isKnown: boolean;
  /** Drops the record: the next apply reads the kernel back. */
  forget(): void;
  /** Brings the kernel to the request's table. Called with a delta only while `isKnown`. */
  apply(request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome>;
}

/** Attempts of one apply when the kernel turns out to differ from the record. */
const maxReadings = 3;

/** The surroundings of the applies of one backend. */
export interface ApplyContext {
  readonly logger: Logger;
  readonly ipFamily: IpFamily;
}

/**
 * Returns the `apply` of a backend by the contract of `DataplaneBackend.apply`: a delta where the kernel's state is known,
 * otherwise a full apply; once more, after reading back, when the kernel differs from the record. A refusal of the host is
 * the outcome `failed`; an aborted apply rejects with the signal's reason. Both forget the state. Throws `UsageError` for
 * arguments of other types.
 */
export function createApply(state: AppliedState, context: ApplyContext): DataplaneBackend['apply'] {
  requireMethods('createApply: state', state, ['apply', 'forget']);
  requireFields('createApply: context', context, { logger: requireLogger, ipFamily: requireIpFamily });
  const { logger, ipFamily } = context;
  return async (request, signal) => {
    try {
      for (let readings = 1; ; readings++) {
        try {
          const isUnknown = request.scope.kind === 'delta' && !state.isKnown;
          return await state.apply(isUnknown ? { ...request, scope: { kind: 'full' } } : request, signal);
        } catch (error) {
          if (!(error instanceof KernelDiffersError) || readings === maxReadings) throw error;
          state.forget();
          logger.warn('the rules are read back', { ipFamily, reason: error.message, cause: error.cause });
        }
      }
    } catch (error) {
      state.forget();
      signal.throwIfAborted();
      if (error instanceof HostError) return { status: 'failed', error };
      throw error;
    }
  };
}

/** The result for all groups. */
export interface CommitResult {
  /** Changes that the kernel accepted. */
  writes: number;
  /** Services that the kernel refused or that cannot be rendered, each with its first error. */
  readonly failed: Map<ServicePortKey, Error>;
  /** Groups that the kernel refused; excludes services that cannot be rendered. */
  refused: number;
  /** Stale objects that could not be removed. */
  readonly unremoved: Error[];
}

/** An empty result. */
export function noResult(): CommitResult {
  return { writes: 0, failed: new Map(), refused: 0, unremoved: [] };
}

/** The result as the outcome of an apply. */
export function outcomeOf({ writes: count, failed, unremoved: [unremoved] }: CommitResult): ApplyOutcome {
  const writes = unremoved === undefined ? { writes: count } : { writes: count, unremoved };
  return failed.size > 0 ? { status: 'partial', ...writes, failed } : { status: 'applied', ...writes };
}

/** Attempts of a write that another process blocks, and the wait between two. */
const maxAttempts = 4;
const attemptGap = millis(50);

/**
 * Writes groups in their order, in as few writes as the writer's limit allows. After a refusal it finds the refused
 * group, by the report of the kernel or by halving, and writes all others. Groups are taken from the iterable when
 * their turn comes. Fills `result` as it proceeds. Rejects when settings are refused, and with errors of the writer.
 */
export async function commitGroups<Group extends ChangeGroup<Change>, Change>(
  groups: Iterable<Group>,
  { writer, result }: { readonly writer: GroupWriter<Group, Change>; readonly result: CommitResult },
  signal: AbortSignal,
): Promise<void> {
  const commit = new Commit(writer, result);
  let isFirst = true;
  for (const part of commit.parts(groups)) {
    if (!isFirst && writer.isBlocking) await writer.clock.sleep(millis(0), signal);
    isFirst = false;
    await commit.write(part, signal);
  }
}

class Commit<Group extends ChangeGroup<Change>, Change> {
  readonly #writer: GroupWriter<Group, Change>;
  readonly #result: CommitResult;
  #budget: number;

  constructor(writer: GroupWriter<Group, Change>, result: CommitResult) {
    this.#writer = writer;
    this.#result = result;
    this.#budget = writer.refusalBudget;
  }

  /** Plans groups and packs them into writes. */
  *parts(groups: Iterable<Group>): Generator<readonly PlannedGroup<Group, Change>[]> {
    let part: PlannedGroup<Group, Change>[] = [];
    let weight = 0;
    for (const group of groups) {
      const planned = this.#plan(group);
      if (planned === undefined) continue;
      const own = this.#writer.weigh(planned.changes);
      const together = part.at(-1)?.group.together;
      const isBound = together !== undefined && together === group.together;
      if (part.length > 0 && !isBound && weight + own > this.#writer.limit) {
        yield part;
        [part, weight] = [[], 0];
      }
      part.push(planned);
      weight += own;
    }
    if (part.length > 0) yield part;
  }

  async write(planned: readonly PlannedGroup<Group, Change>[], signal: AbortSignal): Promise<void> {
    const writer = this.#writer;
    let part = planned;
    for (let attempts = 1; part.length > 0;) {
      const written = await writer.write(part, signal);
      this.#result.writes += written.writes;
      if (written.status === 'written') {
        for (const { group } of part) group.settle(true);
        return;
      }
      const { error, isTransient = false } = written;
      if (isTransient) {
        if (attempts === maxAttempts) throw error;
        attempts++;
        await writer.clock.sleep(attemptGap, signal);
        part = this.#again(part);
        continue;
      }
      this.#budget--;
      if (this.#budget <= 0) {
        for (const { group } of part) this.#refuse(group, error);
        return;
      }
      const refused = part.length === 1 ? part[0] : part.find(({ group }) => group === written.group);
      if (refused !== undefined) part = await this.#withoutRefused(part, { refused, error }, signal);
      else {
        const middle = Math.ceil(part.length / 2);
        await this.write(this.#again(part.slice(0, middle)), signal);
        part = this.#again(part.slice(middle));
      }
    }
  }

  /** Returns the groups to write next: all of them once more, or the rest after the refused group has failed. */
  async #withoutRefused(
    part: readonly PlannedGroup<Group, Change>[],
    { refused, error }: { readonly refused: PlannedGroup<Group, Change>; readonly error: Error },
    signal: AbortSignal,
  ): Promise<readonly PlannedGroup<Group, Change>[]> {
    const writer = this.#writer;
    if ((await writer.reconsider?.(refused, error, signal)) === true) return this.#again(part);
    this.#refuse(refused.group, error);
    const instead = writer.insteadOf?.(refused.group);
    return this.#again(
      part.flatMap((one) => {
        if (one !== refused) return one;
        return instead === undefined ? [] : (this.#plan(instead) ?? []);
      }),
    );
  }

  /** Undefined when there is nothing to write: the group is settled, or has failed. */
  #plan(group: Group): PlannedGroup<Group, Change> | undefined {
    let changes: readonly Change[];
    try {
      changes = group.plan();
    } catch (error) {
      if (group.owner.kind !== 'services' || !isExpected(error) || error instanceof KernelDiffersError) throw error;
      this.#fail(group, error);
      return undefined;
    }
    if (changes.length > 0) return { group, changes };
    group.settle(true);
    return undefined;
  }

  #again(part: readonly PlannedGroup<Group, Change>[]): readonly PlannedGroup<Group, Change>[] {
    if (this.#writer.atomicity === 'transaction') return part;
    return part.flatMap(({ group }) => this.#plan(group) ?? []);
  }

  #refuse(group: Group, error: Error): void {
    this.#result.refused++;
    this.#fail(group, error);
  }

  #fail(group: Group, error: Error): void {
    const { owner } = group;
    const { failed, unremoved } = this.#result;
    group.settle(false);
    if (owner.kind === 'services') {
      for (const key of owner.keys) failed.set(key, failed.get(key) ?? error);
    } else if (owner.kind === 'stale') {
      unremoved.push(
        new HostError('apply.unremoved', `cannot remove ${owner.what}: ${error.message}`, { cause: error }),
      );
    } else
      throw error instanceof DataplaneError ? error : new HostError('apply.refused', error.message, { cause: error });
  }
}
