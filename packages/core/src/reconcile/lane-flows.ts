import { type FormerEndpoints, formerEndpoints, RecentEndpoints } from '../conntrack/former-endpoints.ts';
import { canLeaveStaleFlows } from '../conntrack/stale-flows.ts';
import { isEqual } from '../equal.ts';
import { InvariantError } from '../errors.ts';
import type { ForwardingTable, TableDelta } from '../forwarding/forwarding-table.ts';
import type { Logger } from '../log.ts';
import type { ServicePortKey } from '../records/keys.ts';
import type { Clock } from '../time.ts';
import type { AfterApply } from './family-lane.ts';
import type { DataplaneBackend } from './dataplane-backend.ts';
import { FlowCleaning } from './flow-cleaning.ts';

/** The parts of a lane that the cleaning of flows uses. */
export interface LaneFlowsOptions {
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
export class LaneFlows {
  readonly #options: LaneFlowsOptions;
  readonly #recent: RecentEndpoints;
  readonly #cleaning: FlowCleaning | undefined;

  constructor(options: LaneFlowsOptions) {
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
