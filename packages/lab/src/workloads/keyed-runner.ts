import { ApiServerError, type Clock, type Logger, millis, type Millis } from '@switchyard/core';

interface KeyState {
  isWanted: boolean;
  failures: number;
  /** Whether the current series of failures has been logged. */
  isLogged: boolean;
  /** Cancels the scheduled run. */
  timer: AbortController | undefined;
  waiting: (() => void)[];
}

/** Runs at the same time, over all keys. */
const parallel = 8;
const shortestRetry = 5;
const longestRetry = 5000;
/** Timers beyond this overflow and fire at once. One extra run a day is harmless. */
const longestPause = 24 * 3600 * 1000;

/** Reconciles a key. Resolves with the delay until the next run, if one is due. Rejections are retried. */
type Run = (key: string, signal: AbortSignal) => Promise<Millis | undefined | void>;

/**
 * Runs one function per key, never twice at a time for the same key. A poke during a run makes one more run. Disposing aborts
 * what runs and waits for it.
 */
export class KeyedRunner implements AsyncDisposable {
  /** For the log, for example `deployment`. */
  readonly #name: string;
  readonly #context: { readonly clock: Clock; readonly log: Logger };
  readonly #run: Run;
  readonly #states = new Map<string, KeyState>();
  readonly #ready: string[] = [];
  readonly #running = new Map<string, Promise<void>>();
  readonly #disposal = new AbortController();

  constructor(name: string, context: { readonly clock: Clock; readonly log: Logger }, run: Run) {
    this.#name = name;
    this.#context = context;
    this.#run = run;
  }

  poke(key: string): void {
    if (this.#disposal.signal.aborted) return;
    const fresh: KeyState = { isWanted: false, failures: 0, isLogged: false, timer: undefined, waiting: [] };
    const state = this.#states.get(key) ?? fresh;
    this.#states.set(key, state);
    if (state.isWanted) return;
    state.isWanted = true;
    this.#ready.push(key);
    this.#startMore();
  }

  /** Resolves when a run of `key` that began after this call has ended, with or without an error, or the runner was disposed. */
  async settle(key: string): Promise<void> {
    if (this.#disposal.signal.aborted) return;
    this.poke(key);
    // The run that takes this poke has not begun: it begins in a later turn of the event loop.
    await new Promise<void>((resolve) => this.#states.get(key)?.waiting.push(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposal.abort(new DOMException('the controller was stopped', 'AbortError'));
    await Promise.all(this.#running.values());
    for (const state of this.#states.values()) {
      state.timer?.abort();
      for (const wake of state.waiting) wake();
    }
    this.#states.clear();
  }

  #startMore(): void {
    for (let index = 0; index < this.#ready.length && this.#running.size < parallel;) {
      const key = this.#ready[index] ?? '';
      if (this.#running.has(key)) {
        index += 1;
        continue;
      }
      this.#ready.splice(index, 1);
      const run = this.#runOnce(key).finally(() => {
        this.#running.delete(key);
        if (!this.#disposal.signal.aborted) this.#startMore();
      });
      this.#running.set(key, run);
    }
  }

  async #runOnce(key: string): Promise<void> {
    await Promise.resolve(); // see `settle`
    const state = this.#states.get(key);
    const { signal } = this.#disposal;
    if (state === undefined || signal.aborted) return;
    state.isWanted = false;
    state.timer?.abort();
    state.timer = undefined;
    const waiting = state.waiting.splice(0);
    try {
      const again = await this.#run(key, signal);
      state.failures = 0;
      state.isLogged = false;
      if (typeof again === 'number') this.#pokeAfter(key, state, again);
      else if (!state.isWanted && state.waiting.length === 0) this.#states.delete(key);
    } catch (error) {
      if (!signal.aborted) this.#retry(key, state, error);
    }
    for (const wake of waiting) wake();
  }

  /** A conflict is not logged: another client wrote first, and the next run reads the new state. */
  #retry(key: string, state: KeyState, error: unknown): void {
    const isConflict = error instanceof ApiServerError && (error.status === 409 || error.status === 404);
    if (!isConflict && !state.isLogged) {
      state.isLogged = true;
      this.#context.log.warn('reconcile failed, will retry', { controller: this.#name, key, error });
    }
    this.#pokeAfter(key, state, millis(Math.min(longestRetry, shortestRetry * 2 ** state.failures)));
    state.failures += 1;
  }

  #pokeAfter(key: string, state: KeyState, delay: Millis): void {
    const timer = new AbortController();
    state.timer = timer;
    this.#context.clock.sleep(millis(Math.min(delay, longestPause)), timer.signal).then(
      () => this.poke(key),
      () => undefined,
    );
  }
}
