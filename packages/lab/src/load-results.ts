import type { LoadResult } from './load-types.ts';

/** Results of a load so far, for any number of readers. */
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

  /** Resolves at the next result or at the end. */
  get change(): Promise<void> {
    return this.#change.promise;
  }

  /** Returns the results from index `from` on, in order of completion. */
  since(from: number): readonly LoadResult[] {
    return this.#results.slice(from);
  }

  add(results: readonly LoadResult[]): void {
    this.#results.push(...results);
    this.#announce();
  }

  /** Marks the results as complete. */
  finish(): void {
    this.#isFinished = true;
    this.#announce();
  }

  /** Returns all results, ordered by sequence. */
  inOrder(): readonly LoadResult[] {
    return this.#results.toSorted((a, b) => a.sequence - b.sequence);
  }

  /** Yields all results in order of completion as they arrive; ends or throws as `finished` does. */
  async *read(finished: Promise<unknown>): AsyncGenerator<LoadResult, void> {
    for (let next = 0; ;) {
      const { change } = this;
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
