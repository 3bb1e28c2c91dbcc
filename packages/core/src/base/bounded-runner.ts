import { type Clock, type Millis, millis } from './time.ts';

/** Why a run happens. `change`: poked. `retry`: the last run asked for it. `resync`: it was due or requested. */
export type RunReason = 'change' | 'retry' | 'resync';

/** How a run went. `after` overrides the back-off for this one retry. */
export type RunOutcome = { readonly status: 'done' } | { readonly status: 'retry'; readonly after?: Millis };

/**
 * What to run, and how often. Periods are read for each run and poke, so a getter may answer differently later.
 */
export interface BoundedRunnerOptions {
  readonly clock: Clock;
  /** Least time between the end of a run and the start of the next one. */
  readonly minGap: Millis;
  /** Longest time between two resyncs; it is also due this long after the start. */
  readonly resyncInterval: Millis;
  /** Wait before a retry: `first`, then doubled up to `max`. A run that is done starts over at `first`. */
  readonly retry: { readonly first: Millis; readonly max: Millis };
  /** Calls never overlap. A rejection ends `BoundedRunner.run` with it. */
  run(reason: RunReason, signal: AbortSignal): Promise<RunOutcome>;
}

const woken = Symbol('woken');

/**
 * Runs one function, one at a time: at once for the first change after idle, then not before `minGap`
 * has passed since the end of the last run, with everything poked meanwhile taken together. A failed
 * run comes again with back-off, earlier if something changes, and a resync comes at least once per
 * interval.
 */
export class BoundedRunner {
  readonly #options: BoundedRunnerOptions;
  #isPoked = false;
  #isResyncRequested = false;
  #wake: (() => void) | undefined;

  constructor(options: BoundedRunnerOptions) {
    this.#options = options;
  }

  /** Something changed. Cheap; may be called at any time, also from within a run. */
  poke(): void {
    this.#isPoked = true;
    this.#wake?.();
  }

  /** The next run is a resync, as soon as `minGap` allows. */
  requestResync(): void {
    this.#isResyncRequested = true;
    this.#wake?.();
  }

  /** Runs until `signal` aborts; resolves (never rejects for the abort) after the run in flight ended. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    let end = -Infinity;
    let retryAt = Infinity;
    let resyncAt = clock.monotonic() + this.#options.resyncInterval;
    let backoff: number = this.#options.retry.first;
    while (!signal.aborted) {
      const now = clock.monotonic();
      const earliest = end + this.#options.minGap;
      const isResync = this.#isResyncRequested || now >= resyncAt;
      const due = Math.max(earliest, isResync || this.#isPoked ? now : Math.min(retryAt, resyncAt));
      if (due > now) {
        await this.#sleep(millis(due - now), signal);
        continue;
      }
      const reason = isResync ? 'resync' : this.#isPoked ? 'change' : 'retry';
      this.#isPoked = false;
      this.#isResyncRequested = false;
      const outcome = await this.#runOnce(reason, signal);
      end = clock.monotonic();
      const { resyncInterval, retry } = this.#options;
      if (isResync) resyncAt = end + resyncInterval;
      retryAt = outcome.status === 'retry' ? end + (outcome.after ?? backoff) : Infinity;
      backoff = outcome.status === 'retry' ? Math.min(backoff * 2, retry.max) : retry.first;
    }
  }

  /** A run that was cut short by the abort ends the loop, whatever it rejects with. */
  async #runOnce(reason: RunReason, signal: AbortSignal): Promise<RunOutcome> {
    try {
      return await this.#options.run(reason, signal);
    } catch (error) {
      if (signal.aborted) return { status: 'done' };
      throw error;
    }
  }

  /** Sleeps for `duration`, or until poked or aborted. */
  async #sleep(duration: Millis, signal: AbortSignal): Promise<void> {
    const controller = new AbortController();
    const onAbort = (): void => controller.abort(signal.reason);
    this.#wake = () => controller.abort(woken);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await this.#options.clock.sleep(duration, controller.signal);
    } catch (error) {
      if (error !== woken && !signal.aborted) throw error;
    } finally {
      this.#wake = undefined;
      signal.removeEventListener('abort', onAbort);
    }
  }
}
