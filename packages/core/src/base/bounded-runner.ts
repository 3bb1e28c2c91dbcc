import { requireClock, requireFields, requireFunction, requireNumber, requireRetry } from './argument.ts';
import { type Clock, type Millis, millis } from './time.ts';

/** Reason of a run. `change`: poked. `retry`: requested by the last run. `resync`: due or requested. */
export type RunReason = 'change' | 'retry' | 'resync';

/** Result of a run. `after` overrides the back-off for this one retry. */
export type RunOutcome = { readonly status: 'done' } | { readonly status: 'retry'; readonly after?: Millis };

/** The function to run, and its periods. Periods are read for each run and poke, so a getter may change them later. */
export interface BoundedRunnerOptions {
  readonly clock: Clock;
  /** Minimum time between the end of a run and the start of the next one. */
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
 * has passed since the end of the last run; pokes in between are merged. A failed run is repeated with
 * back-off, earlier after a change. A resync happens at least once per interval.
 */
export class BoundedRunner {
  readonly #options: BoundedRunnerOptions;
  #isPoked = false;
  #isResyncRequested = false;
  #wake: (() => void) | undefined;

  /** Throws `UsageError` for options of other types. */
  constructor(options: BoundedRunnerOptions) {
    requireFields('BoundedRunner: options', options, {
      clock: requireClock,
      minGap: requireNumber,
      resyncInterval: requireNumber,
      retry: requireRetry,
      run: requireFunction,
    });
    this.#options = options;
  }

  /** Requests a run after a change. Cheap; may be called at any time, also from within a run. */
  poke(): void {
    this.#isPoked = true;
    this.#wake?.();
  }

  /** Requests a resync as the next run, as soon as `minGap` allows. */
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

  /** Calls the run. A rejection after the abort ends the loop without an error. */
  async #runOnce(reason: RunReason, signal: AbortSignal): Promise<RunOutcome> {
    try {
      return await this.#options.run(reason, signal);
    } catch (error) {
      if (signal.aborted) return { status: 'done' };
      throw error;
    }
  }

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
