/** Requests that follow each apply. */
export class AppliedListeners {
  readonly #listeners = new Set<() => void>();

  /** Calls `listener` after each apply, until the result is called. */
  add(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  notify(): void {
    for (const listener of this.#listeners) listener();
  }
}
