import type { IpFamily } from '../ip/address.ts';
import type { Logger } from '../log.ts';
import type { Metrics } from '../metrics.ts';
import type { ServiceKey } from '../records/keys.ts';
import { type Clock, type Millis, millis, seconds } from '../time.ts';

/** A change of endpoints, and when the cluster says it happened (wall clock, whole seconds). */
export interface ChangeTrigger {
  readonly time: Millis;
  readonly service: ServiceKey;
}

/** Where latencies go. */
export interface ProgrammingLatencyOptions {
  readonly ipFamily: IpFamily;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** A change with the moments it has passed (wall clock). */
interface Passage extends ChangeTrigger {
  readonly accepted: Millis;
}

/** More changes than this between two applies add nothing to a distribution. */
const maxWaiting = 1000;
/** Trigger times are whole seconds: what takes less may have taken nothing. */
const worthALine = seconds(2);
/** Always worth a line. */
const slow = seconds(10);
/** A maximum is news for this long. */
const maximumAge = seconds(600);
/** Least time between two lines. */
const lineGap = seconds(10);

/**
 * Network programming latency of one family: from the trigger time of a change to the end of the apply that contains it. The
 * slowest change of an apply is logged if it is the slowest of the last ten minutes, or took ten seconds, with where
 * its time went.
 */
export class ProgrammingLatency {
  readonly #options: ProgrammingLatencyOptions;
  #waiting: Passage[] = [];
  #inFlight: readonly Passage[] = [];
  #built: Millis = millis(0);
  #applying: Millis = millis(0);
  #maximum: { readonly duration: number; readonly at: Millis } | undefined;
  #lastLine = -Infinity;
  #omitted = 0;

  constructor(options: ProgrammingLatencyOptions) {
    this.#options = options;
  }

  /** Changes were accepted: the next run contains them. */
  accept(triggers: readonly ChangeTrigger[]): void {
    if (triggers.length === 0) return;
    const accepted = this.#options.clock.now();
    const room = maxWaiting - this.#waiting.length;
    for (const { time, service } of triggers.slice(0, Math.max(0, room)))
      this.#waiting.push({ time, service, accepted });
  }

  /** A run begins, with everything accepted so far. */
  beginRun(): void {
    this.#inFlight = [...this.#inFlight, ...this.#waiting].slice(0, maxWaiting);
    this.#waiting = [];
    this.#built = this.#applying = this.#options.clock.now();
  }

  /** The table is built; now it is applied. A run that failed is not told of: the next one contains its changes as well. */
  beginApply(): void {
    this.#applying = this.#options.clock.now();
  }

  /** What the run contained is in the kernel. */
  finishRun(): void {
    if (this.#inFlight.length === 0) return;
    const { clock, metrics, ipFamily } = this.#options;
    const now = clock.now();
    let slowest: Passage | undefined;
    for (const passage of this.#inFlight) {
      const latency = Math.max(0, now - passage.time) / 1000;
      metrics.observe('kubeproxy_network_programming_duration_seconds', { ip_family: ipFamily }, latency);
      if (slowest === undefined || passage.time < slowest.time) slowest = passage;
    }
    this.#inFlight = [];
    if (slowest !== undefined) this.#report(slowest, now);
  }

  #report(slowest: Passage, now: Millis): void {
    const { clock, logger, ipFamily } = this.#options;
    const duration = now - slowest.time;
    if (duration < worthALine) return;
    const at = clock.monotonic();
    if (this.#maximum !== undefined && at - this.#maximum.at > maximumAge) this.#maximum = undefined;
    const isMaximum = duration > (this.#maximum?.duration ?? 0);
    if (isMaximum) this.#maximum = { duration, at };
    else if (duration < slow) return;
    if (at - this.#lastLine < lineGap) {
      this.#omitted++;
      return;
    }
    logger.info('slow network programming', {
      ipFamily,
      service: slowest.service,
      triggerTime: new Date(slowest.time).toISOString(),
      durationMs: rounded(duration),
      untilHeardMs: rounded(slowest.accepted - slowest.time),
      waitedMs: rounded(this.#built - slowest.accepted),
      buildMs: rounded(this.#applying - this.#built),
      applyMs: rounded(now - this.#applying),
      isSlowestOfTenMinutes: isMaximum,
      omittedLines: this.#omitted,
    });
    this.#lastLine = at;
    this.#omitted = 0;
  }
}

function rounded(duration: number): number {
  return Math.round(duration * 1000) / 1000;
}
