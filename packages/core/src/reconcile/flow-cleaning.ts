import type { FormerEndpoints } from '../conntrack/former-endpoints.ts';
import { HostError } from '../errors.ts';
import type { ForwardingTable } from '../forwarding/forwarding-table.ts';
import type { IpFamily } from '../ip/address.ts';
import type { Logger } from '../log.ts';
import type { ServicePortKey } from '../records/keys.ts';
import { type Clock, millis, seconds } from '../time.ts';
import { BoundedRunner, type RunOutcome, type RunReason } from './bounded-runner.ts';

/** By what flows are judged. */
export interface FlowCriteria {
  /** The newest table: a flow to an endpoint that the kernel is just being told of is a good one. */
  readonly table: ForwardingTable;
  /** Services that are not in the kernel as the table says; their flows are left alone. A new object when it differs. */
  readonly except: Pick<ReadonlySet<ServicePortKey>, 'has'>;
  /** Endpoints to which the kernel translated a moment ago. Another array when it differs. */
  readonly former: readonly FormerEndpoints[];
}

/** What removes flows, and how often it may. */
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
 * Looks for stale flows of one family after applies that can have left some, beside the lane: to look takes the kernel
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
