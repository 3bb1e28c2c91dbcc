import {
  canLeaveStaleFlows,
  type FormerEndpoints,
  formerEndpoints,
  RecentEndpoints,
} from '../conntrack/stale-flows.ts';
import { isEqual } from '../../base/values.ts';
import { HostError, InvariantError } from '../../base/errors.ts';
import type { ForwardingTable, TableDelta } from '../../model/forwarding/forwarding-table.ts';
import type { Logger } from '../../base/log.ts';
import type { ServicePortKey } from '../../model/records/keys.ts';
import { type Clock, millis, seconds } from '../../base/time.ts';
import type { AfterApply } from './family-reconciler.ts';
import type { DataplaneBackend } from '../dataplane-backend.ts';
import type { IpFamily } from '../../model/ip/address.ts';
import { BoundedRunner, type RunOutcome, type RunReason } from '../../base/bounded-runner.ts';

/** The parts of a family that the cleaning of flows uses. */
interface FamilyFlowsOptions {
  readonly backend: DataplaneBackend;
  readonly afterApply: AfterApply;
  readonly clock: Clock;
  readonly logger: Logger;
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

/** Removes stale UDP flows after the applies of one family, for a backend that uses kernel conntrack. */
export class FamilyFlows {
  readonly #options: FamilyFlowsOptions;
  readonly #recent: RecentEndpoints;
  readonly #cleaning: FlowCleaning | undefined;

  constructor(options: FamilyFlowsOptions) {
    this.#options = options;
    this.#recent = new RecentEndpoints(options.clock);
    this.#cleaning = this.#newCleaning();
  }

  /** Removes stale flows after applies until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#cleaning?.run(signal);
  }

  /**
   * Compares tables before an apply. `applied` is undefined when the kernel state is unknown. Costs nothing where flows are
   * not removed.
   */
  compare(applied: ForwardingTable | undefined, table: ForwardingTable, delta: TableDelta): FlowsLeft {
    if (this.#cleaning === undefined) return { mayLeave: false, former: [] };
    if (applied === undefined) return { mayLeave: true, former: [] };
    const failed = this.#options.failed(); // the kernel state of these is not in `applied`
    const mayLeave =
      !isEqual(applied.nodePortCidrs, table.nodePortCidrs) ||
      delta.upserted.some((service) =>
        canLeaveStaleFlows(failed.has(service.key) ? undefined : applied.services.get(service.key), service),
      );
    return { mayLeave, former: formerEndpoints(applied, table, delta) };
  }

  /** Notes the success of the apply, except for the services of `failed()`. `hasHealed`: it repaired drift; flows that began in between were not translated. */
  noteApplied({ mayLeave, former }: FlowsLeft, hasHealed: boolean): void {
    if (this.#cleaning === undefined) return;
    const { failed, backend, logger } = this.#options;
    const { isNew, forgotten } = this.#recent.noteApplied(former, failed());
    if (forgotten > 0) {
      const why = 'too many UDP frontends were removed at once';
      logger.warn('UDP flows may stay until their timeout', { ipFamily: backend.ipFamily, frontends: forgotten, why });
    }
    if (mayLeave || hasHealed || isNew) this.#cleaning.request();
  }

  #newCleaning(): FlowCleaning | undefined {
    const { backend, afterApply, clock, logger, newest, failed } = this.#options;
    const clean = afterApply.cleanStaleFlows?.bind(afterApply);
    if (clean === undefined || !backend.capabilities.usesKernelConntrack) return undefined;
    return new FlowCleaning({
      ipFamily: backend.ipFamily,
      clean: async (criteria, signal) => {
        const start = clock.monotonic();
        await clean(criteria, signal);
        this.#recent.noteLook(start);
      },
      criteria: () => {
        const table = newest();
        if (table === undefined) throw new InvariantError('flows are compared before the first table was built');
        return { table, except: failed(), former: this.#recent.current };
      },
      clock,
      logger,
    });
  }
}

/** Criteria for stale flows. */
export interface FlowCriteria {
  /** Returns the newest table: flows to endpoints of an apply in progress are valid. */
  readonly table: ForwardingTable;
  /** Returns services whose kernel state differs from the table; their flows are kept. A new object after each change. */
  readonly except: Pick<ReadonlySet<ServicePortKey>, 'has'>;
  /** Returns recent endpoints of removed frontends. A new array after each change. */
  readonly former: readonly FormerEndpoints[];
}

/** Function that removes flows, and its time limit. */
interface FlowCleaningOptions {
  readonly ipFamily: IpFamily;
  /** Removes stale flows. It may read `criteria` repeatedly. */
  readonly clean: (criteria: () => FlowCriteria, signal: AbortSignal) => Promise<void>;
  readonly criteria: () => FlowCriteria;
  readonly clock: Clock;
  readonly logger: Logger;
}

const minGap = millis(100);
/** Pause after a search, as a multiple of its duration, so that a large table of flows costs at most a fifth of a core. */
const restFactor = 4;
/**
 * Wait before the second search. A packet that was being translated during the change enters connection tracking after it,
 * with the old endpoint.
 */
const secondLook = seconds(1);
const interval = seconds(3600);
const retry = { first: seconds(1), max: seconds(60) };

/**
 * Searches for stale flows of one family after applies that may have left some. It runs beside the applies, since a search
 * takes the kernel many times longer than an apply. Logs a failure when it begins and ends, and retries with back-off.
 */
class FlowCleaning {
  readonly #options: FlowCleaningOptions;
  readonly #runner: BoundedRunner;
  #isRequested = false;
  #hasFailed = false;

  constructor(options: FlowCleaningOptions) {
    const { clock } = options;
    this.#options = options;
    const run = (reason: RunReason, signal: AbortSignal): Promise<RunOutcome> => this.#look(reason, signal);
    this.#runner = new BoundedRunner({ clock, minGap, resyncInterval: interval, retry, run });
  }

  /** Notes that stale flows may exist. */
  request(): void {
    this.#isRequested = true;
    this.#runner.poke();
  }

  /** Runs until aborted; resolves after the search in progress has ended. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#runner.run(signal);
  }

  async #look(reason: RunReason, signal: AbortSignal): Promise<RunOutcome> {
    const { clean, criteria, clock } = this.#options;
    if (!this.#isRequested) return { status: 'done' }; // the hourly search, before the first apply
    const start = clock.monotonic();
    try {
      await clean(criteria, signal);
    } catch (error) {
      if (!(error instanceof HostError) || signal.aborted) throw error;
      this.#note(error);
      return { status: 'retry' };
    }
    this.#note(undefined);
    const duration = clock.monotonic() - start;
    if (duration > 0) await clock.sleep(millis(restFactor * duration), signal);
    return reason === 'change' ? { status: 'retry', after: secondLook } : { status: 'done' };
  }

  #note(error: HostError | undefined): void {
    const { ipFamily, logger } = this.#options;
    if ((error !== undefined) === this.#hasFailed) return;
    this.#hasFailed = error !== undefined;
    if (error === undefined) logger.info('stale flows can be removed again', { ipFamily });
    else logger.warn('stale flows not removed, will retry', { ipFamily, error });
  }
}
