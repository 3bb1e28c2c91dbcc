import { asError, millis } from '@switchyard/core';
import type { LoadMessage, LoadOptions, LoadResult, LoadRun } from '@switchyard/lab';
import { callPod, type CalledPod, type Caller } from './traffic-caller.ts';

/** Who sends a load, and where to. */
export interface RemoteLoadPlace {
  readonly caller: Caller;
  readonly pod: CalledPod;
  readonly url: string;
}

const defaultRate = 20;
const defaultTimeout = 500;

/** Starts an open loop in a pod. Times of its results are of the pod's machine. */
export function startRemoteLoad(
  place: RemoteLoadPlace,
  options: Omit<LoadOptions, 'url'>,
  signal: AbortSignal,
): LoadRun {
  return new RemoteLoad(place, options, signal);
}

class RemoteLoad implements LoadRun {
  readonly finished: Promise<readonly LoadResult[]>;
  /** It is no process of this machine. */
  readonly pid = 0;
  readonly logFile = '';
  readonly #place: RemoteLoadPlace;
  readonly #signal: AbortSignal;
  readonly #results: LoadResult[] = [];
  readonly #load: Promise<number>;
  #change = Promise.withResolvers<void>();
  #isFinished = false;

  constructor(place: RemoteLoadPlace, options: Omit<LoadOptions, 'url'>, signal: AbortSignal) {
    this.#place = place;
    this.#signal = signal;
    const { rate = defaultRate, timeout = defaultTimeout, duration } = options;
    this.#load = this.#call('load', { url: place.url, rate, timeout, duration }).then(({ load }) => load);
    this.finished = this.#follow();
    this.finished.catch(() => undefined); // told to whoever awaits it
  }

  async stop(): Promise<readonly LoadResult[]> {
    await this.#call('unload', { load: await this.#load });
    return this.finished;
  }

  async *[Symbol.asyncIterator](): AsyncIterator<LoadResult> {
    for (let next = 0; ;) {
      const change = this.#change.promise;
      const result = this.#results[next];
      if (result !== undefined) {
        next += 1;
        yield result;
      } else if (this.#isFinished) {
        await this.finished; // throws when the pod was lost
        return;
      } else await change;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isFinished && !this.#signal.aborted) await this.stop().catch(() => undefined);
  }

  async #follow(): Promise<readonly LoadResult[]> {
    try {
      const load = await this.#load;
      for (let isFinished = false; !isFinished;) {
        const answer = await this.#call('loaded', { load, from: this.#results.length });
        this.#results.push(...answer.messages.map(resultOf));
        isFinished = answer.isFinished && answer.messages.length === 0;
        this.#announce();
      }
      return this.#results.toSorted((a, b) => a.sequence - b.sequence);
    } catch (error) {
      throw asError(error);
    } finally {
      this.#isFinished = true;
      this.#announce();
    }
  }

  #call<K extends Parameters<typeof callPod>[2]['name']>(
    name: K,
    argument: Parameters<typeof callPod<K>>[2]['argument'],
  ): ReturnType<typeof callPod<K>> {
    const { caller, pod } = this.#place;
    return callPod(caller, pod, { name, argument }, this.#signal);
  }

  #announce(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }
}

function resultOf(message: LoadMessage): LoadResult {
  const { sequence, outcome, answeredBy, httpStatus } = message;
  const { scheduledAt, sentAt, doneAt } = message;
  return {
    sequence,
    outcome,
    answeredBy,
    httpStatus,
    scheduledAt: millis(scheduledAt),
    sentAt: millis(sentAt),
    doneAt: millis(doneAt),
  };
}
