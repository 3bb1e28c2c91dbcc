import { BoundedRunner, type RunOutcome, type RunReason } from '../../base/bounded-runner.ts';
import { HostError, InvariantError } from '../../base/errors.ts';
import { type Millis, millis, seconds } from '../../base/time.ts';
import { isEqual } from '../../base/values.ts';
import type { ForwardingTable, TableDelta } from '../../model/forwarding/forwarding-table.ts';
import type { ServicePortKey } from '../../model/records/keys.ts';
import {
  canLeaveStaleFlows,
  type FormerEndpoints,
  formerEndpoints,
  RecentEndpoints,
} from '../conntrack/stale-flows.ts';
import type { FamilyHost } from './family-log.ts';
import type { AfterApply } from './family-reconciler.ts';

/** Criteria for stale flows. */
export interface FlowCriteria {
  /** Returns the newest table: flows to endpoints of an apply in progress are valid. */
  readonly table: ForwardingTable;
  /** Returns services whose kernel state differs from the table; their flows are kept. A new object after each change. */
  readonly except: Pick<ReadonlySet<ServicePortKey>, 'has'>;
  /** Returns recent endpoints of removed frontends. A new array after each change. */
  readonly former: readonly FormerEndpoints[];
}

interface FamilyTables {
  /** The newest table, applied or not. */
  readonly newest: () => ForwardingTable | undefined;
  /** Returns services whose kernel state differs from the table. */
  readonly failed: () => ReadonlyMap<ServicePortKey, unknown>;
}

/** Flows that an apply may leave in connection tracking. */
interface FlowsLeft {
  readonly mayLeave: boolean;
  readonly former: readonly FormerEndpoints[];
}

const minGap = millis(100);
/**
 * Pause after a search, as a multiple of its CPU time, so that a large table of flows costs at most a fifth of a core. On a busy
 * machine the search lasts longer than that, and the next change's flows must not wait for it.
 */
const restFactor = 4;
/**
 * Wait before the second search. A packet that was being translated during the change enters connection tracking after it,
 * with the old endpoint.
 */
const secondLook = seconds(1);
const resyncInterval = seconds(3600);
const retry = { first: seconds(1), max: seconds(60) };

/**
 * Removes stale UDP flows after the applies of one family, for a backend that uses kernel conntrack. Searches run beside the
 * applies, since one takes the kernel many times longer than an apply. Logs a failure when it begins and ends, and retries
 * with back-off.
 */
export class FamilyFlows {
  readonly #host: FamilyHost;
  readonly #tables: FamilyTables;
  readonly #recent: RecentEndpoints;
  /** Undefined where flows are not removed. */
  readonly #clean: AfterApply['cleanStaleFlows'];
  readonly #runner: BoundedRunner;
  #isRequested = false;
  #hasFailed = false;

  constructor(host: FamilyHost, afterApply: AfterApply, tables: FamilyTables) {
    const { backend, clock } = host;
    this.#host = host;
    this.#tables = tables;
    this.#recent = new RecentEndpoints(clock);
    if (backend.capabilities.usesKernelConntrack) this.#clean = afterApply.cleanStaleFlows?.bind(afterApply);
    const run = (reason: RunReason, signal: AbortSignal): Promise<RunOutcome> => this.#look(reason, signal);
    this.#runner = new BoundedRunner({ clock, minGap, resyncInterval, retry, run });
  }

  /** Runs until aborted; resolves after the search in progress has ended. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#clean !== undefined) await this.#runner.run(signal);
  }

  /**
   * Compares tables before an apply. `applied` is undefined when the kernel state is unknown. Costs nothing where flows are
   * not removed.
   */
  compare(applied: ForwardingTable | undefined, table: ForwardingTable, delta: TableDelta): FlowsLeft {
    if (this.#clean === undefined) return { mayLeave: false, former: [] };
    if (applied === undefined) return { mayLeave: true, former: [] };
    const failed = this.#tables.failed(); // the kernel state of these is not in `applied`
    const mayLeave =
      !isEqual(applied.nodePortCidrs, table.nodePortCidrs) ||
      delta.upserted.some((service) =>
        canLeaveStaleFlows(failed.has(service.key) ? undefined : applied.services.get(service.key), service),
      );
    return { mayLeave, former: formerEndpoints(applied, table, delta) };
  }

  /** Notes the success of the apply, except for the failed services. `hasHealed`: it repaired drift; flows that began in between were not translated. */
  noteApplied({ mayLeave, former }: FlowsLeft, hasHealed: boolean): void {
    if (this.#clean === undefined) return;
    const { backend, logger } = this.#host;
    const { isNew, forgotten } = this.#recent.noteApplied(former, this.#tables.failed());
    if (forgotten > 0) {
      const why = 'too many UDP frontends were removed at once';
      logger.warn('UDP flows may stay until their timeout', { ipFamily: backend.ipFamily, frontends: forgotten, why });
    }
    if (!mayLeave && !hasHealed && !isNew) return;
    this.#isRequested = true;
    this.#runner.poke();
  }

  async #look(reason: RunReason, signal: AbortSignal): Promise<RunOutcome> {
    const { clock } = this.#host;
    if (!this.#isRequested) return { status: 'done' }; // the hourly search, before the first apply
    const start = clock.monotonic();
    let cpuTime: Millis | undefined;
    try {
      cpuTime = await this.#clean?.(() => this.#criteria(), signal);
      this.#recent.noteLook(start);
    } catch (error) {
      if (!(error instanceof HostError) || signal.aborted) throw error;
      this.#note(error);
      return { status: 'retry' };
    }
    this.#note(undefined);
    if (cpuTime !== undefined && cpuTime > 0) await clock.sleep(millis(restFactor * cpuTime), signal);
    return reason === 'change' ? { status: 'retry', after: secondLook } : { status: 'done' };
  }

  #criteria(): FlowCriteria {
    const table = this.#tables.newest();
    if (table === undefined) throw new InvariantError('flows are compared before the first table was built');
    return { table, except: this.#tables.failed(), former: this.#recent.current };
  }

  #note(error: HostError | undefined): void {
    const { backend, logger } = this.#host;
    const { ipFamily } = backend;
    if ((error !== undefined) === this.#hasFailed) return;
    this.#hasFailed = error !== undefined;
    if (error === undefined) logger.info('stale flows can be removed again', { ipFamily });
    else logger.warn('stale flows not removed, will retry', { ipFamily, error });
  }
}
