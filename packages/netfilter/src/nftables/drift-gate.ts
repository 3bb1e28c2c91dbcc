import { abortable } from '@switchyard/core';

/** No look starts during an apply, and a look during which one began is ignored. */
export class DriftGate {
  #holds = 0;
  #begun = 0;
  #opened = Promise.withResolvers<undefined>();
  #next = Promise.withResolvers<undefined>();

  /** Number of applies that have begun. */
  get epoch(): number {
    return this.#begun;
  }

  /** Closes the gate until the result is disposed. */
  hold(): Disposable {
    this.#begun++;
    this.#next.resolve(undefined);
    this.#next = Promise.withResolvers();
    if (this.#holds++ === 0) this.#opened = Promise.withResolvers();
    const held = new DisposableStack();
    held.defer(() => {
      if (--this.#holds === 0) this.#opened.resolve(undefined);
    });
    return held;
  }

  /** Resolves when no apply is running. Rejects with `signal.reason`. */
  async free(signal: AbortSignal): Promise<void> {
    while (this.#holds > 0) await abortable(this.#opened.promise, signal);
    signal.throwIfAborted();
  }

  /** Resolves when an apply that began after `epoch` has ended, or none began until `limit`. Rejects with `signal.reason`. */
  async passed(epoch: number, limit: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    if (this.#begun === epoch) {
      const stop = new AbortController();
      try {
        await Promise.race([this.#next.promise, limit(AbortSignal.any([signal, stop.signal]))]);
      } finally {
        stop.abort();
      }
    }
    await this.free(signal);
  }
}
