import { asError } from '@switchyard/core';
import { type LoadOptions, type LoadResult, LoadResults, type LoadRun } from '@switchyard/lab';
import { callPod, type CalledPod, type Caller } from './traffic-caller.ts';

export interface RemoteLoadPlace {
  readonly caller: Caller;
  readonly pod: CalledPod;
  readonly url: string;
}

const defaultRate = 20;
const defaultTimeout = 500;

/** An open loop in a pod, which starts at once. Times of its results are of the pod's machine. */
export class RemoteLoad implements LoadRun {
  readonly finished: Promise<readonly LoadResult[]>;
  /** The load is not a process of this machine. */
  readonly pid = 0;
  readonly logFile = '';
  readonly #place: RemoteLoadPlace;
  readonly #signal: AbortSignal;
  readonly #results = new LoadResults();
  readonly #load: Promise<number>;

  constructor(place: RemoteLoadPlace, options: Omit<LoadOptions, 'url'>, signal: AbortSignal) {
    this.#place = place;
    this.#signal = signal;
    const { rate = defaultRate, timeout = defaultTimeout, duration } = options;
    this.#load = this.#call('load', { url: place.url, rate, timeout, duration }).then(({ load }) => load);
    this.finished = this.#follow();
    this.finished.catch(() => undefined); // callers that await it get the error
  }

  async stop(): Promise<readonly LoadResult[]> {
    await this.#call('unload', { load: await this.#load });
    return this.finished;
  }

  [Symbol.asyncIterator](): AsyncIterator<LoadResult> {
    return this.#results.read(this.finished);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#results.isFinished && !this.#signal.aborted) await this.stop().catch(() => undefined);
  }

  async #follow(): Promise<readonly LoadResult[]> {
    try {
      const load = await this.#load;
      for (let isFinished = false; !isFinished;) {
        const answer = await this.#call('loaded', { load, from: this.#results.count });
        this.#results.add(answer.messages);
        isFinished = answer.isFinished && answer.messages.length === 0;
      }
      return this.#results.inOrder();
    } catch (error) {
      throw asError(error);
    } finally {
      this.#results.finish();
    }
  }

  #call<K extends Parameters<typeof callPod>[2]['name']>(
    name: K,
    argument: Parameters<typeof callPod<K>>[2]['argument'],
  ): ReturnType<typeof callPod<K>> {
    const { caller, pod } = this.#place;
    return callPod(caller, pod, { name, argument }, this.#signal);
  }
}
