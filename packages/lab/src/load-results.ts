import type { LoadResult } from './load-types.ts';

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

  /** Resolves when more has come, or all has. */
  get change(): Promise<void> {
    return this.#change.promise;
  }

  /** From the `from`-th on, in the order of completion. */
  since(from: number): readonly LoadResult[] {
    return this.#results.slice(from);
  }

  add(results: readonly LoadResult[]): void {
    this.#results.push(...results);
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
