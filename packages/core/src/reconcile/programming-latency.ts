import type { IpFamily } from '../ip/address.ts';
import type { Logger } from '../log.ts';
import type { Metrics } from '../metrics.ts';
import type { ServiceKey } from '../records/keys.ts';
import { type Clock, type Millis, millis, seconds } from '../time.ts';

/** A change of endpoints, and when the cluster says it happened: in whole seconds. */
export interface ChangeTrigger {
  readonly service: ServiceKey;
  /** As written in the slice; wall clock. */
  readonly triggerTime: Millis;
  /** The same by our monotonic clock, which does not jump. */
  readonly changed: Millis;
}

/** Where latencies go. */
export interface ProgrammingLatencyOptions {
  readonly ipFamily: IpFamily;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** A change with the moment (monotonic) at which it was heard of. */
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
  #started: Millis = millis(0);
  #applying: Millis = millis(0);
  #maximum: { readonly duration: number; readonly at: Millis } | undefined;
  #lastLine = -Infinity;
  #omitted = 0;

  constructor(options: ProgrammingLatencyOptions) {
    this.#options = options;
  }

  /** Changes were accepted at some monotonic time: the next run contains them. */
  accept(triggers: readonly ChangeTrigger[], accepted: Millis = this.#options.clock.monotonic()): void {
    if (triggers.length === 0) return;
    const room = maxWaiting - this.#waiting.length;
    for (const trigger of triggers.slice(0, Math.max(0, room))) this.#waiting.push({ ...trigger, accepted });
  }

  /** A run begins, with everything accepted so far. */
  beginRun(): void {
    this.#inFlight = [...this.#inFlight, ...this.#waiting].slice(0, maxWaiting);
    this.#waiting = [];
    this.#started = this.#applying = this.#options.clock.monotonic();
  }

  /** The table is built; now it is applied. A run that failed is not told of: the next one contains its changes as well. */
  beginApply(): void {
    this.#applying = this.#options.clock.monotonic();
  }

  /** What the run contained is in the kernel. */
  finishRun(): void {
    if (this.#inFlight.length === 0) return;
    const { clock, metrics, ipFamily } = this.#options;
    const now = clock.monotonic();
    let slowest: Passage | undefined;
    for (const passage of this.#inFlight) {
      const latency = (now - passage.changed) / 1000;
      metrics.observe('kubeproxy_network_programming_duration_seconds', { ip_family: ipFamily }, latency);
      if (slowest === undefined || passage.changed < slowest.changed) slowest = passage;
    }
    this.#inFlight = [];
    if (slowest !== undefined) this.#report(slowest, now);
  }

  #report(slowest: Passage, now: Millis): void {
    const { logger, ipFamily } = this.#options;
    const duration = now - slowest.changed;
    if (duration < worthALine) return;
    if (this.#maximum !== undefined && now - this.#maximum.at > maximumAge) this.#maximum = undefined;
    const isMaximum = duration > (this.#maximum?.duration ?? 0);
    if (isMaximum) this.#maximum = { duration, at: now };
    else if (duration < slow) return;
    if (now - this.#lastLine < lineGap) {
      this.#omitted++;
      return;
    }
    logger.info('slow network programming', {
      ipFamily,
      service: slowest.service,
      triggerTime: new Date(slowest.triggerTime).toISOString(),
      durationMs: rounded(duration),
      untilHeardMs: rounded(slowest.accepted - slowest.changed),
      waitedMs: rounded(this.#started - slowest.accepted),
      buildMs: rounded(this.#applying - this.#started),
      applyMs: rounded(now - this.#applying),
      isSlowestOfTenMinutes: isMaximum,
      omittedLines: this.#omitted,
    });
    this.#lastLine = now;
    this.#omitted = 0;
  }
}

function rounded(duration: number): number {
  return Math.round(duration * 1000) / 1000;
}
