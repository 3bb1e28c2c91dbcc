import { abortable, runTogether, waitFor } from '../../base/abortable.ts';
import * as check from '../../base/argument.ts';
import { type EventRecorder, noopEvents, type Logger } from '../../base/log.ts';
import type { ForwardingTable } from '../../model/forwarding/forwarding-table.ts';
import { type IpFamily, requireIpFamily } from '../../model/ip/address.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { NodeName } from '../../model/records/keys.ts';
import type { ClusterEvent, ClusterStateSource } from '../../model/state/cluster-event.ts';
import { type ClusterState, everythingDirty, isNothingDirty } from '../../model/state/cluster-state.ts';
import { type Clock, type Millis, millis, seconds } from '../../base/time.ts';
import { ChangeCounts, type ChangeTrigger } from './family-metrics.ts';
import { EligibilityLog, IpModeLog, type ReconcilerStatus } from './family-log.ts';
import { FamilyReconciler, type FamilyOptions, type ReconcileTiming } from './family-reconciler.ts';

/** Options of a reconciler. */
export interface ReconcilerOptions {
  readonly source: ClusterStateSource;
  /** Owned by the reconciler: other code must not apply batches to it. */
  readonly state: ClusterState;
  readonly nodeName: NodeName;
  /** One entry per IP family of this node. */
  readonly families: readonly FamilyOptions[];
  /** Awaited together before the first apply. */
  readonly startConditions?: readonly StartCondition[];
  readonly timing: ReconcileTiming;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Absent: no Events are recorded. */
  readonly events?: EventRecorder;
  /** Returns the time since the source last received data. Default: always in contact. */
  readonly sourceSilence?: () => Millis;
}

/** Keeps the kernel equal to the desired state of this node. */
export interface Reconciler {
  /**
   * Runs until aborted; resolves after the apply in progress has ended. Rejects if the source can never
   * recover or a backend breaks its contract; forwarding stays as it is in every case.
   */
  run(signal: AbortSignal): Promise<void>;
  /** Builds every table again after a change of `tableOptions`. Writes differences only. */
  rebuild(reason: string): void;
  /** Reads the kernel back and repairs it, in every family, as soon as possible. */
  requestFullResync(reason: string): void;
  status(): ReconcilerStatus;
  /**
   * Returns the table in the kernel by family, except for the failed services of `status()`. A family without an apply is
   * missing.
   */
  tables(): ReadonlyMap<IpFamily, ForwardingTable>;
}

/** Returns a reconciler that has not started. Throws `UsageError` for options of other types. */
export function createReconciler(options: ReconcilerOptions): Reconciler {
  check.requireFields('createReconciler: options', options, {
    source: check.withMethods('batches'),
    state: check.withMethods('apply', 'slicesOf'),
    nodeName: check.requireText,
    families: (name, value) => {
      check.requireList(name, value);
      for (const [index, family] of value.entries()) checkFamily(`${name}[${index}]`, family);
    },
    startConditions: check.optional(check.requireList),
    timing: check.withFields({
      minSyncPeriod: check.optional(check.requireNumber),
      retry: check.requireRetry,
      resyncInterval: check.requireNumber,
    }),
    clock: check.requireClock,
    logger: check.requireLogger,
    metrics: check.requireMetrics,
    events: check.optional(check.withMethods('record')),
    sourceSilence: check.optional(check.requireFunction),
  });
  return new ClusterReconciler(options);
}

const checkFamily = check.withFields({
  backend: check.withFields({
    ipFamily: requireIpFamily,
    capabilities: check.objectArgument,
    observers: check.objectArgument,
    apply: check.requireFunction,
  }),
  tableOptions: check.requireFunction,
  afterApply: check.withMethods('syncHealth'),
});

/** Largest accepted difference of a trigger time into the future; larger ones mean that a clock is wrong. */
const maxClockSkew = seconds(1);

class ClusterReconciler implements Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #families: readonly FamilyReconciler[];
  readonly #startedAt: Millis;
  readonly #changes: ChangeCounts;
  /** Resolved by the first batch that leaves the state in sync. */
  readonly #inSync = Promise.withResolvers<void>();
  readonly #conditions: readonly StartWait[];
  readonly #eligibility: EligibilityLog;

  constructor(options: ReconcilerOptions) {
    const { state, clock, logger, metrics, timing } = options;
    this.#options = options;
    this.#startedAt = clock.monotonic();
    this.#conditions = (options.startConditions ?? []).map((one) => new StartWait(one, { clock, logger }));
    const ipFamilies = options.families.map(({ backend }) => backend.ipFamily);
    this.#changes = new ChangeCounts(metrics, ipFamilies);
    const { nodeName, events = noopEvents, sourceSilence = () => millis(0) } = options;
    this.#eligibility = new EligibilityLog(nodeName, logger);
    const shared = { state, clock, logger, metrics, timing, nodeName, events, sourceSilence };
    const context = { ...shared, changes: this.#changes, ipModes: new IpModeLog(logger) };
    this.#families = options.families.map((family) => new FamilyReconciler(family, context));
  }

  async run(signal: AbortSignal): Promise<void> {
    const ages = this.#families.map((family) => (stop: AbortSignal) => family.logAge(stop));
    await runTogether([...ages, (stop) => this.#follow(stop), (stop) => this.#drive(stop)], signal);
  }

  rebuild(reason: string): void {
    this.#options.logger.info('rebuilding every table', { reason });
    for (const family of this.#families) family.mark(everythingDirty, []);
  }

  requestFullResync(reason: string): void {
    this.#options.logger.info('full resync requested', { reason });
    for (const family of this.#families) family.requestFullResync();
  }

  status(): ReconcilerStatus {
    const { state, nodeName } = this.#options;
    const areNodesListed = !state.missingResources.includes('Node');
    return {
      isInSync: state.isInSync,
      missingResources: state.missingResources,
      isNodeEligible: areNodesListed ? (state.nodes.get(nodeName)?.isEligible ?? false) : true,
      families: new Map(this.#families.map((family) => [family.ipFamily, family.status()])),
    };
  }

  tables(): ReadonlyMap<IpFamily, ForwardingTable> {
    return new Map(
      this.#families.flatMap(({ ipFamily, applied }) => (applied === undefined ? [] : [[ipFamily, applied] as const])),
    );
  }

  /** Applies a batch of the source to the state. Cheap: only map updates and marks. */
  async #follow(signal: AbortSignal): Promise<void> {
    for await (const batch of this.#options.source.batches(signal)) {
      if (signal.aborted) return;
      this.#accept(batch);
    }
  }

  #accept(batch: readonly ClusterEvent[]): void {
    const { state } = this.#options;
    const dirty = state.apply(batch);
    this.#changes.note(batch, !isNothingDirty(dirty));
    for (const family of this.#families) family.mark(dirty, this.#triggers(batch, family.ipFamily));
    if (!state.missingResources.includes('Node')) this.#eligibility.note(state.nodes.get(this.#options.nodeName));
    if (!state.isInSync) return;
    this.#inSync.resolve();
    for (const condition of this.#conditions) condition.check();
  }

  /**
   * Returns the trigger times of changes by the monotonic clock. Omits changes older than this process, and times in the
   * future or from before a clock was set.
   */
  #triggers(batch: readonly ClusterEvent[], ipFamily: IpFamily): readonly ChangeTrigger[] {
    const { clock } = this.#options;
    const now = clock.monotonic();
    return batch.flatMap((event) => {
      if (event.resource !== 'EndpointSlice' || event.kind !== 'upsert') return [];
      const { lastChangeTriggerTime: triggerTime, ipFamily: family, service } = event.item;
      if (triggerTime === undefined || family !== ipFamily) return [];
      const age = clock.now() - triggerTime;
      if (age < -maxClockSkew || age > now - this.#startedAt) return [];
      return [{ service, triggerTime, changed: millis(now - Math.max(0, age)) }];
    });
  }

  /** Nothing reaches a backend before every resource was listed in full. */
  async #drive(signal: AbortSignal): Promise<void> {
    await abortable(this.#inSync.promise, signal);
    this.#options.logger.info('in sync', { services: this.#options.state.services.size });
    await Promise.all(this.#conditions.map((condition) => condition.wait(signal)));
    const tasks = this.#families.flatMap((family) => family.tasks);
    await runTogether(tasks, signal);
  }
}

/** A condition to wait for after in-sync and before the first apply, for a bounded time. */
export interface StartCondition {
  /** Description for the log. */
  readonly what: string;
  /** Called after each batch until it is met. Throws when it cannot be met: the reconciler ends with this error. */
  readonly isMet: () => boolean;
  readonly timeout: Millis;
  /** Error with which the reconciler ends after the time limit; absent: it continues with a warning. */
  readonly failure?: () => Error;
}

/** Interval of log lines while waiting. */
const progressInterval: Millis = seconds(30);

class StartWait {
  readonly #condition: StartCondition;
  readonly #host: { readonly clock: Clock; readonly logger: Logger };
  readonly #met = Promise.withResolvers<void>();
  #isMet = false;

  constructor(condition: StartCondition, host: { readonly clock: Clock; readonly logger: Logger }) {
    this.#condition = condition;
    this.#host = host;
  }

  /** Checks the condition unless it was met before. Call it when the result may have changed. */
  check(): void {
    if (this.#isMet || !this.#condition.isMet()) return;
    this.#isMet = true;
    this.#met.resolve();
  }

  /** Resolves when it is met or the time limit has passed; rejects with the condition's failure, or when aborted. */
  async wait(signal: AbortSignal): Promise<void> {
    const { what, timeout, failure } = this.#condition;
    const { clock, logger } = this.#host;
    const until = clock.monotonic() + timeout;
    let isFirst = true;
    while (!this.#isMet) {
      const left = Math.round(until - clock.monotonic()); // timers may fire a little early
      if (left <= 0) {
        if (failure !== undefined) throw failure();
        logger.warn('continuing without an unmet condition', { what, waitedMs: timeout });
        return;
      }
      if (isFirst) logger.info('waiting', { what, timeoutMs: timeout });
      else logger.info('still waiting', { what, waitedMs: timeout - left, timeoutMs: timeout });
      isFirst = false;
      await waitFor(this.#met.promise, { clock, limit: Math.min(left, progressInterval) }, signal);
      signal.throwIfAborted();
    }
  }
}
