import {
  canLeaveStaleFlows,
  type FormerEndpoints,
  formerEndpoints,
  RecentEndpoints,
} from '../conntrack/stale-flows.ts';
import { isEqual } from '../../base/equal.ts';
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
export interface FamilyFlowsOptions {
  readonly backend: DataplaneBackend;
  readonly afterApply: AfterApply;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The newest table, applied or not. */
  readonly newest: () => ForwardingTable | undefined;
  /** Services that are not in the kernel as the table says. */
  readonly failed: () => ReadonlyMap<ServicePortKey, unknown>;
}

/** Flows that an apply may leave in the connection tracking. */
export interface FlowsLeft {
  readonly mayLeave: boolean;
  readonly former: readonly FormerEndpoints[];
}

/** Follows the applies of one family and removes UDP flows that lead nowhere, where the backend uses kernel conntrack. */
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
   * Compares tables before an apply. `applied` is undefined when it is not known what the kernel has. Costs nothing where
   * nothing is cleaned.
   */
  compare(applied: ForwardingTable | undefined, table: ForwardingTable, delta: TableDelta): FlowsLeft {
    if (this.#cleaning === undefined) return { mayLeave: false, former: [] };
    if (applied === undefined) return { mayLeave: true, former: [] };
    const failed = this.#options.failed(); // what the kernel has of these is not in `applied`
    const mayLeave =
      !isEqual(applied.nodePortCidrs, table.nodePortCidrs) ||
      delta.upserted.some((service) =>
        canLeaveStaleFlows(failed.has(service.key) ? undefined : applied.services.get(service.key), service),
      );
    return { mayLeave, former: formerEndpoints(applied, table, delta) };
  }

  /** The apply has succeeded, but for the services of `failed()`. `hasHealed`: it repaired something, and flows that began meanwhile were not translated. */
  noteApplied({ mayLeave, former }: FlowsLeft, hasHealed: boolean): void {
    if (this.#cleaning === undefined) return;
    const { failed, backend, logger } = this.#options;
    const { isNew, forgotten } = this.#recent.noteApplied(former, failed());
    if (forgotten > 0) {
      const why = 'too many UDP frontends went at once';
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
        if (table === undefined) throw new InvariantError('flows are judged before the first table was built');
        return { table, except: failed(), former: this.#recent.current };
      },
      clock,
      logger,
    });
  }
}

/** By what flows are judged. */
export interface FlowCriteria {
  /** The newest table: a flow to an endpoint that the kernel is just being told of is a good one. */
  readonly table: ForwardingTable;
  /** Services that are not in the kernel as the table says; their flows are left alone. A new object when it differs. */
  readonly except: Pick<ReadonlySet<ServicePortKey>, 'has'>;
  /** Endpoints to which the kernel translated a moment ago. Another array when it differs. */
  readonly former: readonly FormerEndpoints[];
}

/** The remover of flows, and its limit of time. */
export interface FlowCleaningOptions {
  readonly ipFamily: IpFamily;
  /** Removes what is stale. `criteria` may be asked again and again while it works. */
  readonly clean: (criteria: () => FlowCriteria, signal: AbortSignal) => Promise<void>;
  readonly criteria: () => FlowCriteria;
  readonly clock: Clock;
  readonly logger: Logger;
}

const minGap = millis(100);
/** After a look this many times its duration, so that a large table of flows never costs more than a fifth of a core. */
const restFactor = 4;
/**
 * A packet that was being translated while the kernel took the change enters the connection tracking a moment later,
 * with the old endpoint. The second look finds it.
 */
const secondLook = seconds(1);
const interval = seconds(3600);
const retry = { first: seconds(1), max: seconds(60) };

/**
 * Looks for stale flows of one family after applies that can have left some, beside its applies: to look takes the kernel
 * many times longer than to apply. A failure is logged when it begins and when it ends, and tried again with back-off.
 */
export class FlowCleaning {
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

  /** There may be stale flows now. */
  request(): void {
    this.#isRequested = true;
    this.#runner.poke();
  }

  /** Runs until aborted; resolves after the look in flight has ended. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#runner.run(signal);
  }

  async #look(reason: RunReason, signal: AbortSignal): Promise<RunOutcome> {
    const { clean, criteria, clock } = this.#options;
    if (!this.#isRequested) return { status: 'done' }; // the hourly look, before anything was applied
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
