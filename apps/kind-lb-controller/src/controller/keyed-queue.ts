import { type Clock, type Millis, millis } from '@switchyard/core';
import { type RunOutcome } from '@switchyard/core/engine';

/** Work per key, its parallelism and retries. */
export interface KeyedQueueOptions<K> {
  readonly clock: Clock;
  /** Keys that are worked on at the same time. */
  readonly workers: number;
  /** Wait before a retry of one key: `first`, then doubled up to `max`. A run that is done starts over at `first`. */
  readonly retry: { readonly first: Millis; readonly max: Millis };
  /** Calls for one key never overlap. A rejection ends `KeyedQueue.run` with it. */
  run(key: K, signal: AbortSignal): Promise<RunOutcome>;
}

interface Entry {
  state: 'ready' | 'running' | 'waiting';
  /** While running: it must run again, or must unless this run fails. */
  next: 'nothing' | 'touched' | 'added';
  failures: number;
  /** Monotonic; while waiting: when its retry is due. */
  dueAt: number;
}

const woken = Symbol('woken');

/**
 * Work by key, with the rules of client-go's work queue: a key is never worked on twice at once; added while it
 * is worked on, it runs once more afterwards; added many times before its turn, it runs once. A failed key comes again with
 * a back-off of its own, earlier if it is added; a failure of one key delays no other.
 */
export class KeyedQueue<K> {
  readonly #options: KeyedQueueOptions<K>;
  readonly #entries = new Map<K, Entry>();
  readonly #ready: K[] = [];
  readonly #running = new Set<Promise<void>>();
  #wake: (() => void) | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(options: KeyedQueueOptions<K>) {
    this.#options = options;
  }

  /** Nothing is ready, running or waiting for a retry. */
  get isIdle(): boolean {
    return this.#ready.length === 0 && this.#running.size === 0 && !this.#hasWaiting;
  }

  /** Its turn is as soon as a worker is free, even if it is waiting for a retry. Cheap; may be called at any time. */
  add(key: K): void {
    const entry = this.#entries.get(key);
    if (entry?.state === 'running') entry.next = 'added';
    else if (entry?.state !== 'ready') this.#makeReady(key, entry);
    this.#wake?.();
  }

  /** As `add`; earlier failures count no more, for what they came from is over. */
  startOver(key: K): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) entry.failures = 0;
    this.add(key);
  }

  /** As `add`, but a key that failed keeps waiting for its retry, and so does one that is failing now. */
  touch(key: K): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) this.add(key);
    else if (entry.state === 'running' && entry.next === 'nothing') entry.next = 'touched';
  }

  /** Works until aborted; resolves when the runs in flight have ended. Rejects with what a run rejects with. */
  async run(signal: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const either = AbortSignal.any([signal, stop.signal]);
    while (!signal.aborted && this.#failure === undefined) {
      this.#readyDue();
      this.#startSome(either);
      await this.#sleep(either);
    }
    stop.abort(this.#failure?.error);
    await Promise.all(this.#running);
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  get #hasWaiting(): boolean {
    return [...this.#entries.values()].some(({ state }) => state === 'waiting');
  }

  #makeReady(key: K, entry: Entry | undefined): void {
    this.#entries.set(key, { state: 'ready', next: 'nothing', failures: entry?.failures ?? 0, dueAt: 0 });
    this.#ready.push(key);
  }

  #readyDue(): void {
    const now = this.#options.clock.monotonic();
    for (const [key, entry] of this.#entries) {
      if (entry.state === 'waiting' && entry.dueAt <= now) this.#makeReady(key, entry);
    }
  }

  #startSome(signal: AbortSignal): void {
    while (this.#running.size < this.#options.workers) {
      const key = this.#ready.shift();
      if (key === undefined) return;
      const run: Promise<void> = this.#runOne(key, signal).finally(() => {
        this.#running.delete(run);
        this.#wake?.();
      });
      this.#running.add(run);
    }
  }

  /** Never rejects. */
  async #runOne(key: K, signal: AbortSignal): Promise<void> {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.state = 'running';
    let outcome: RunOutcome = { status: 'done' };
    try {
      outcome = await this.#options.run(key, signal);
    } catch (error) {
      if (!signal.aborted) this.#failure ??= { error };
    }
    this.#ended(key, entry, outcome);
  }

  #ended(key: K, entry: Entry, outcome: RunOutcome): void {
    entry.failures = outcome.status === 'done' ? 0 : entry.failures + 1;
    const isDone = outcome.status === 'done';
    if (entry.next === 'added' || (entry.next === 'touched' && isDone)) this.#makeReady(key, entry);
    else if (isDone) this.#entries.delete(key);
    else {
      const { retry, clock } = this.#options;
      const backOff = Math.min(retry.max, retry.first * 2 ** Math.min(entry.failures - 1, 30));
      entry.state = 'waiting';
      entry.dueAt = clock.monotonic() + (outcome.after ?? backOff);
    }
  }

  /** Until something is added or ends, a retry is due, or the abort. */
  async #sleep(signal: AbortSignal): Promise<void> {
    const wake = new AbortController();
    this.#wake = () => wake.abort(woken);
    const dues = [...this.#entries.values()].filter(({ state }) => state === 'waiting').map(({ dueAt }) => dueAt);
    const now = this.#options.clock.monotonic();
    // With all workers busy nothing can start before one of them ends, which wakes.
    const isBusy = this.#running.size >= this.#options.workers;
    const wait = isBusy ? longest : Math.max(0, Math.min(longest, ...dues.map((due) => due - now)));
    try {
      await this.#options.clock.sleep(millis(wait), AbortSignal.any([signal, wake.signal]));
    } catch (error) {
      if (error !== woken && !signal.aborted) throw error;
    } finally {
      this.#wake = undefined;
    }
  }
}

/** No timer is longer; waking for nothing once an hour does no harm. */
const longest = 3_600_000;
