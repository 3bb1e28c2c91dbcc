import { HostError } from '../../base/errors.ts';
import { buildTableFrom, diffTables, isEmptyDelta } from '../../model/forwarding/build-table.ts';
import type {
  ClusterStateView,
  TableOptions,
  ForwardingTable,
  HealthCheck,
  TableDelta,
} from '../../model/forwarding/forwarding-table.ts';
import type { IpFamily } from '../../model/ip/address.ts';
import type { ServiceKey } from '../../model/records/keys.ts';
import {
  type Dirty,
  dirtyServices,
  everythingDirty,
  isNothingDirty,
  mergeDirty,
  nothingDirty,
} from '../../model/state/cluster-state.ts';
import { type Millis, millis } from '../../base/time.ts';
import {
  type IpModeLog,
  ApplyLog,
  type FamilyStatus,
  type FamilyHost,
  type ServiceFaults,
  missingFeatureLog,
  apiServerLog,
} from './family-log.ts';
import { BoundedRunner, type RunOutcome, type RunReason } from '../../base/bounded-runner.ts';
import type { ApplyOutcome, ApplyRequest, DataplaneBackend } from '../dataplane-backend.ts';
import {
  type ChangeCounts,
  type ChangeTrigger,
  FamilyMetrics,
  ProgrammingLatency,
  type SeenChanges,
} from './family-metrics.ts';
import { DriftWatch } from './drift-watch.ts';
import { Heartbeat } from './heartbeat.ts';
import { type FlowCriteria, FamilyFlows } from './family-flows.ts';
import { announcedChecks, earliest, LargeServices, withFailed } from './large-services.ts';

/** Actions after a successful apply, never before it. */
export interface AfterApply {
  /** Announces the health checks that match the kernel. Must not reject for an unavailable port. */
  syncHealth(checks: ReadonlyMap<ServiceKey, HealthCheck>): Promise<void>;
  /**
   * Removes stale UDP flows. Called after changes that can leave some, only for a backend that uses kernel
   * conntrack; one call at a time, beside further applies. Resolves to its CPU time, from which the pause before the
   * next call follows. Rejects with `HostError` when it should be tried again.
   */
  cleanStaleFlows?(criteria: () => FlowCriteria, signal: AbortSignal): Promise<Millis>;
}

/** Intervals of the reconciler. Read before each run, so they may change. */
export interface ReconcileTiming {
  /** Overrides the backend's own floor between two applies. */
  readonly minSyncPeriod: Millis | undefined;
  readonly retry: { readonly first: Millis; readonly max: Millis };
  readonly resyncInterval: Millis;
}

/** One family of the node: its backend and the options of its tables. */
export interface FamilyOptions {
  readonly backend: DataplaneBackend;
  /** Called before each build. A changed result takes effect with the next build of everything. */
  readonly tableOptions: () => TableOptions;
  readonly afterApply: AfterApply;
}

interface FamilyContext extends Omit<FamilyHost, 'backend'> {
  readonly state: ClusterStateView & { readonly slicesVersion: number };
  readonly changes: ChangeCounts;
  readonly timing: ReconcileTiming;
  readonly sourceSilence: () => Millis;
  readonly ipModes: IpModeLog;
}

/** Extent of reading the kernel back: everything, objects with reported drift, or nothing. */
type Reading = 'all' | 'drifted' | 'none';

interface FamilyRun {
  readonly reason: RunReason;
  readonly read: Reading;
  readonly table: ForwardingTable;
  readonly delta: TableDelta;
}

/** Limit of service names in one debug line. */
const maxLoggedServices = 1000;

/**
 * Reconciler of one family: takes dirty services, calls `apply`, one call at a time. Families share only the cluster
 * state, so that a failing or slow one never delays the other.
 */
export class FamilyReconciler {
  readonly #family: FamilyOptions;
  readonly #context: FamilyContext;
  readonly #runner: BoundedRunner;
  readonly #log: ApplyLog;
  readonly #faults: readonly ServiceFaults[];
  readonly #flows: FamilyFlows;
  readonly #drift: DriftWatch;
  readonly #measured: FamilyMetrics;
  readonly #latency: ProgrammingLatency;
  readonly #heartbeat: Heartbeat;
  readonly #large: LargeServices;
  #dirty: Dirty = everythingDirty;
  #nextRead: Reading = 'all';
  /** The newest table, applied or not: the base of the next build. */
  #built: ForwardingTable | undefined;
  /** Table in the kernel, except for failed services: the base of the next delta. */
  #applied: ForwardingTable | undefined;
  #announced: ReadonlyMap<ServiceKey, HealthCheck> = new Map();
  #lastApplied: Millis | undefined;
  /** Of the state, at the last build and at the last apply. */
  #slicesVersions = { built: 0, applied: 0 };
  #isRunning = false;
  /** Monotonic times of the oldest waiting change, and of the oldest one in the apply in progress. */
  #pendingSince: Millis | undefined;
  #inFlightSince: Millis | undefined;
  /** Contents of the run in progress, or of the last one. */
  #seen: SeenChanges;

  constructor(family: FamilyOptions, context: FamilyContext) {
    const { clock, timing, sourceSilence } = context;
    const { backend } = family;
    const { ipFamily, capabilities } = backend;
    const host: FamilyHost = { ...context, backend };
    this.#family = family;
    this.#context = context;
    this.#log = new ApplyLog(host);
    this.#measured = new FamilyMetrics(context.metrics, backend);
    this.#latency = new ProgrammingLatency({ ...context, ipFamily });
    this.#seen = context.changes.seen;
    this.#faults = [missingFeatureLog(host), apiServerLog(host)];
    this.#flows = new FamilyFlows(host, family.afterApply, {
      newest: () => this.#built,
      failed: () => this.#log.failedServices,
    });
    this.#drift = new DriftWatch(host, {
      requestRepair: () => this.#requestRepair(),
      requestFullResync: () => this.requestFullResync(),
    });
    this.#heartbeat = new Heartbeat(host, { status: () => this.status(), sourceSilence });
    this.#large = new LargeServices({
      ipFamily,
      state: context.state,
      tableOptions: family.tableOptions,
      clock,
      onReady: () => this.#runner.poke(),
    });
    this.#runner = new BoundedRunner({
      clock,
      get minGap() {
        return timing.minSyncPeriod ?? capabilities.minSyncPeriod;
      },
      get retry() {
        return timing.retry;
      },
      resyncInterval: timing.resyncInterval,
      run: (reason, signal) => this.#runOnce(reason, signal),
    });
  }

  get ipFamily(): IpFamily {
    return this.#family.backend.ipFamily;
  }

  /** Table in the kernel, except for `status().failedServices`; undefined before the first apply that was not refused. */
  get applied(): ForwardingTable | undefined {
    return this.#applied;
  }

  /** Notes services to rebuild. `triggers` are the API's, for the latency metric. */
  mark(dirty: Dirty, triggers: readonly ChangeTrigger[]): void {
    if (isNothingDirty(dirty) || !this.#isRunning) return; // the first run builds everything
    const now = this.#large.divert({ dirty, triggers });
    if (isNothingDirty(now.dirty)) return this.#set('kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds');
    this.#dirty = mergeDirty(this.#dirty, now.dirty);
    this.#latency.accept(now.triggers);
    this.#notePending();
    this.#runner.poke();
  }

  /** Makes the next apply read the kernel back. */
  requestFullResync(): void {
    this.#nextRead = 'all';
    this.#runner.requestResync();
  }

  /** Requests a repair. It is no resync of the runner: foreign changes must not postpone the regular one. */
  #requestRepair(): void {
    if (this.#nextRead === 'none') this.#nextRead = 'drifted';
    this.#runner.poke();
  }

  /** Tasks that last until aborted, beginning with a full apply. Start them when the state is in sync. */
  get tasks(): readonly ((signal: AbortSignal) => Promise<void>)[] {
    const parts = [this.#large, this.#drift, this.#flows, this.#heartbeat];
    return [(signal) => this.#run(signal), ...parts.map((part) => (signal: AbortSignal) => part.run(signal))];
  }

  async #run(signal: AbortSignal): Promise<void> {
    this.#isRunning = true;
    this.#notePending();
    this.#runner.poke();
    await this.#runner.run(signal);
  }

  /** Logs the age of the rules; reads only. */
  async logAge(signal: AbortSignal): Promise<void> {
    await this.#heartbeat.logAge(signal);
  }

  status(): FamilyStatus {
    const since = earliest(this.#inFlightSince ?? this.#pendingSince, this.#large.oldest);
    const isUpToDate = since === undefined && this.#applied !== undefined; // what came since changes nothing in this family
    return {
      ipFamily: this.ipFamily,
      lastApplied: this.#lastApplied,
      generation: this.#applied?.generation,
      slicesVersion: isUpToDate ? this.#context.state.slicesVersion : this.#slicesVersions.applied,
      pendingFor: since === undefined ? undefined : millis(this.#context.clock.monotonic() - since),
      failure: this.#log.failure,
      failedServices: this.#log.failedServices,
    };
  }

  #notePending(): void {
    this.#pendingSince ??= this.#context.clock.monotonic();
    this.#set('kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds');
  }

  async #runOnce(reason: RunReason, signal: AbortSignal): Promise<RunOutcome> {
    this.#begin();
    const table = this.#build();
    if (reason === 'resync') this.#nextRead = 'all';
    const delta = withFailed(diffTables(this.#applied, table), table, this.#log.failedServices);
    const flows = this.#flows.compare(this.#applied, table, delta);
    const read = this.#nextRead;
    this.#nextRead = 'none'; // later requests are for the next run
    if (read === 'none' && isEmptyDelta(delta)) {
      await this.#finish(table, delta);
      return { status: 'done' };
    }
    const outcome = await this.#apply({ reason, read, table, delta }, signal);
    if (outcome.status === 'failed') {
      this.#pendingSince = this.#inFlightSince ?? this.#pendingSince ?? this.#context.clock.monotonic();
      this.#inFlightSince = undefined;
      this.#nextRead = 'all';
      this.#log.noteFailed(outcome.error);
      return { status: 'retry', ...(outcome.retryAfter === undefined ? {} : { after: outcome.retryAfter }) };
    }
    this.#applied = table;
    this.#log.noteApplied(outcome.status === 'partial' ? outcome.failed : new Map());
    this.#drift.noteApplied(outcome.unremoved);
    await this.#finish(table, delta);
    this.#flows.noteApplied(flows, read !== 'none' && outcome.writes > 0);
    return { status: outcome.status === 'partial' ? 'retry' : 'done' };
  }

  /** Assigns all changes noted so far to the run that begins. */
  #begin(): void {
    const large = this.#large.take(!isNothingDirty(this.#dirty));
    for (const { since, triggers } of large.changes) {
      this.#latency.accept(triggers, since);
      this.#pendingSince = earliest(this.#pendingSince, since);
    }
    this.#dirty = mergeDirty(this.#dirty, large.dirty);
    if (this.#large.oldest === undefined) this.#seen = this.#context.changes.seen;
    this.#latency.beginRun();
    this.#inFlightSince = this.#pendingSince;
    this.#pendingSince = undefined;
  }

  #build(): ForwardingTable {
    const table = buildTableFrom({
      state: this.#context.state,
      dirty: dirtyServices(this.#dirty),
      previous: this.#built,
      options: this.#family.tableOptions(),
      prepared: this.#large.builds,
    });
    this.#dirty = nothingDirty;
    this.#built = table;
    this.#slicesVersions.built = this.#context.state.slicesVersion;
    return table;
  }

  async #apply({ reason, read, table, delta }: FamilyRun, signal: AbortSignal): Promise<ApplyOutcome> {
    const { clock, logger } = this.#context;
    const scope = scopeOf(read, delta);
    if (scope.kind === 'full') this.#drift.noteFullApply();
    this.#latency.beginApply();
    const start = clock.monotonic();
    const outcome = await this.#applyOrFail({ table, scope }, signal);
    const durationMs = clock.monotonic() - start;
    this.#measured.noteApply({ scope: scope.kind, durationMs, outcome });
    if (outcome.status === 'failed') return outcome;
    const at = { generation: table.generation, ipFamily: this.ipFamily };
    logger.info('applied', {
      ...at,
      writes: outcome.writes,
      durationMs: Math.round(durationMs * 1000) / 1000,
      scope: scope.kind,
      reason: read === 'drifted' ? 'resync' : reason,
      services: table.services.size,
    });
    logger.debug('applied services', {
      ...at,
      upserted: delta.upserted.slice(0, maxLoggedServices).map((service) => service.key),
      removed: delta.removed.slice(0, maxLoggedServices),
    });
    return outcome;
  }

  /** Calls the backend. One that throws for a refusal of the host violates its contract, but must not end the agent. */
  async #applyOrFail(request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
    try {
      return await this.#family.backend.apply(request, signal);
    } catch (error) {
      if (error instanceof HostError && !signal.aborted) return { status: 'failed', error };
      throw error;
    }
  }

  /** Actions that require that the kernel matches the table. */
  async #finish(table: ForwardingTable, delta: TableDelta): Promise<void> {
    const { clock, changes } = this.#context;
    const failed = this.#log.failedServices;
    this.#inFlightSince = undefined;
    this.#lastApplied = clock.now();
    this.#slicesVersions.applied = this.#slicesVersions.built;
    this.#heartbeat.noteApplied();
    this.#set('kubeproxy_sync_proxy_rules_last_timestamp_seconds');
    this.#latency.finishRun();
    this.#measured.noteTable(table, delta);
    changes.noteApplied(this.ipFamily, this.#seen);
    for (const faults of this.#faults) faults.note(delta);
    this.#context.ipModes.note(delta);
    this.#announced = announcedChecks(this.#announced, table, failed);
    await this.#family.afterApply.syncHealth(this.#announced);
  }

  #set(name: `kubeproxy_sync_proxy_rules_last_${'queued_' | ''}timestamp_seconds`): void {
    this.#context.metrics.set(name, { ip_family: this.ipFamily }, this.#context.clock.now() / 1000);
  }
}

function scopeOf(read: Reading, delta: TableDelta): ApplyRequest['scope'] {
  if (read === 'none') return { kind: 'delta', delta };
  return read === 'drifted' ? { kind: 'full', after: 'drift' } : { kind: 'full' };
}
