import { HostError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { type ChangeGroup, type Driver, type DriverRun, KernelDiffersError, type ServiceWish } from './driver.ts';
import { type CommitResult, commitGroups, noResult, outcomeOf } from './commit-groups.ts';
import type { ApplyOutcome, ApplyRequest } from '../dataplane-backend.ts';
import type { ServiceForwarding, TableDelta } from '../../model/forwarding/forwarding-table.ts';
import type { IpFamily } from '../../model/ip/address.ts';
import type { ServicePortKey } from '../../model/records/keys.ts';

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
 * which differs in the objects that are read first. Calls do not overlap; `runApply` is the entry.
 */
export class ApplyEngine<Held extends HeldService, Group extends ChangeGroup<Change>, Change> implements AppliedState {
  readonly #driver: Driver<Group, Change>;
  readonly #tracker: ServiceTracker<Held>;
  #isKnown = false;

  /** `tracker` is the one that the driver fills. */
  constructor(driver: Driver<Group, Change>, tracker: ServiceTracker<Held>) {
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

  *#groups(request: ApplyRequest, run: DriverRun<Group, Change>, result: CommitResult): Generator<Group> {
    yield* run.before();
    yield* run.services(this.#wishes(request, run.unknown));
    yield* run.after();
    yield* run.stale(result);
  }

  /** Returns the service ports to write: those of the delta, and unknown ones. */
  #wishes({ table, scope }: ApplyRequest, unknown: DriverRun<Group, Change>['unknown']): Iterable<ServiceWish> {
    if (unknown !== undefined) return this.#tracker.wishes(table.services, unknown);
    return scope.kind === 'delta' ? wishesOf(scope.delta) : [];
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

/** The surroundings of an apply. */
export interface ApplyContext {
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly ipFamily: IpFamily;
}

/**
 * Runs one apply by the contract of `DataplaneBackend.apply`: a delta where the kernel's state is known, otherwise a full
 * apply; once more, after reading back, when the kernel differs from the record. A refusal of the host is the outcome
 * `failed`; an aborted apply rejects with the signal's reason. Both forget the state.
 */
export async function runApply(
  state: AppliedState,
  request: ApplyRequest,
  { signal, logger, ipFamily }: ApplyContext,
): Promise<ApplyOutcome> {
  try {
    for (let readings = 1; ; readings++) {
      try {
        return await runOnce(state, request, signal);
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
}

function runOnce(state: AppliedState, { table, scope }: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
  return state.apply({ table, scope: scope.kind === 'delta' && !state.isKnown ? { kind: 'full' } : scope }, signal);
}
