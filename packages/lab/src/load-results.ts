import { millis } from '@switchyard/core';
import type { LoadMessage, LoadResult } from './load-types.ts';

/** What a load has shown so far, wherever it runs, for any number of readers. */
export class LoadResults {
  readonly #results: LoadResult[] = [];
  /** Resolved, and replaced, on every change; readers wait for it. */
  #change = Promise.withResolvers<void>();
  #isFinished = false;

  get count(): number {
    return this.#results.length;
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  add(messages: readonly LoadMessage[]): void {
    this.#results.push(...messages.map(resultOf));
    this.#announce();
  }

  /** Nothing more comes. */
  finish(): void {
    this.#isFinished = true;
    this.#announce();
  }

  /** By sequence. */
  inOrder(): readonly LoadResult[] {
    return this.#results.toSorted((a, b) => a.sequence - b.sequence);
  }

  /** All in the order of completion, from the first on, as they come; ends, or throws, as `finished` does. */
  async *read(finished: Promise<unknown>): AsyncGenerator<LoadResult, void> {
    for (let next = 0; ;) {
      const change = this.#change.promise;
      const result = this.#results[next];
      if (result !== undefined) {
        next += 1;
        yield result;
      } else if (this.#isFinished) {
        await finished;
        return;
      } else {
        await change;
      }
    }
  }

  #announce(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }
}

function resultOf({ sequence, scheduledAt, sentAt, doneAt, outcome, answeredBy, httpStatus }: LoadMessage): LoadResult {
  return {
    sequence,
    scheduledAt: millis(scheduledAt),
    sentAt: millis(sentAt),
    doneAt: millis(doneAt),
    outcome,
    answeredBy,
    httpStatus,
  };
}
