import { abortable } from '@switchyard/core';

/** Runs work of one key one after another, in the order it came; work of different keys at the same time. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>();

  /** Settles as `work` does; rejects with `signal.reason` when aborted before its turn. */
  async run<T>(key: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const done = Promise.withResolvers<void>();
    const mine = before.then(() => done.promise);
    this.#last.set(key, mine);
    try {
      await abortable(before, signal);
      return await work();
    } finally {
      done.resolve();
      if (this.#last.get(key) === mine) this.#last.delete(key);
    }
  }
}
