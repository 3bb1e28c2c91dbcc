/** One entry that must be written: `actual` is what it replaces, undefined when the key is new. */
export interface PendingUpdate<V> {
  readonly desired: V;
  readonly actual: V | undefined;
}

/** Whether two values mean the same kernel object. */
export type Equality<V> = (left: V, right: V) => boolean;

/**
 * What we want and what is there, side by side, for one kind of kernel object, so that the
 * difference is known at every moment without walking everything.
 *
 * Setting and deleting cost O(1) in the number of entries; only `replaceActual` walks all of them.
 * Pending entries come in the order in which they became pending. Not re-entrant; one owner. The
 * owner reports a write with `markApplied` or `markDeleted` only after the kernel accepted it, which
 * makes every line restartable: whatever was not marked is still pending.
 */
export class DeltaTracker<K, V extends NonNullable<unknown>> {
  readonly #desired = new Map<K, V>();
  readonly #actual = new Map<K, V>();
  readonly #pending = new Set<K>();
  readonly #equals: Equality<V>;

  /** `equals` defaults to `Object.is`, which fits strings, numbers and values that keep their identity. */
  constructor(equals: Equality<V> = Object.is) {
    this.#equals = equals;
  }

  /** Wants `key` to be `value`. An equal value changes nothing. */
  setDesired(key: K, value: V): void {
    this.#desired.set(key, value);
    this.#recheck(key);
  }

  /** Wants `key` to be gone. Deleting what was never wanted is no error. */
  deleteDesired(key: K): void {
    if (this.#desired.delete(key)) this.#recheck(key);
  }

  /**
   * Replaces all knowledge of what is there, after reading it back. A later entry of the same key
   * wins. Nothing of the previous actual side survives; an empty `entries` means nothing is there.
   */
  replaceActual(entries: Iterable<readonly [K, V]>): void {
    this.#actual.clear();
    for (const [key, value] of entries) this.#actual.set(key, value);
    this.#pending.clear();
    for (const key of this.#desired.keys()) this.#recheck(key);
    for (const key of this.#actual.keys()) this.#recheck(key);
  }

  /** What must be written: missing or different entries. A copy; safe to mark while walking it. */
  pendingUpdates(): ReadonlyMap<K, PendingUpdate<V>> {
    const updates = new Map<K, PendingUpdate<V>>();
    for (const key of this.#pending) {
      const desired = this.#desired.get(key);
      if (desired !== undefined) updates.set(key, { desired, actual: this.#actual.get(key) });
    }
    return updates;
  }

  /** What must be removed, with the value that is there. A copy; safe to mark while walking it. */
  pendingDeletions(): ReadonlyMap<K, V> {
    const deletions = new Map<K, V>();
    for (const key of this.#pending) {
      const actual = this.#actual.get(key);
      if (actual !== undefined && !this.#desired.has(key)) deletions.set(key, actual);
    }
    return deletions;
  }

  /** `value` is now there. It stays pending if something else is wanted by now. */
  markApplied(key: K, value: V): void {
    this.#actual.set(key, value);
    this.#recheck(key);
  }

  /** Nothing is there under `key` any more. It becomes pending again if it is wanted by now. */
  markDeleted(key: K): void {
    this.#actual.delete(key);
    this.#recheck(key);
  }

  /** Everything pending was written in one transaction: what is there now equals what is wanted. */
  markAllApplied(): void {
    for (const key of this.#pending) {
      const desired = this.#desired.get(key);
      if (desired === undefined) this.#actual.delete(key);
      else this.#actual.set(key, desired);
    }
    this.#pending.clear();
  }

  /** The wanted value, or undefined. */
  desired(key: K): V | undefined {
    return this.#desired.get(key);
  }

  /** The value known to be there, or undefined. */
  actual(key: K): V | undefined {
    return this.#actual.get(key);
  }

  /** All wanted entries; a live view that must not be kept across changes. */
  desiredEntries(): IterableIterator<[K, V]> {
    return this.#desired.entries();
  }

  /** All entries known to be there; a live view that must not be kept across changes. */
  actualEntries(): IterableIterator<[K, V]> {
    return this.#actual.entries();
  }

  /** How many keys differ, updates and deletions together. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  #recheck(key: K): void {
    const desired = this.#desired.get(key);
    const actual = this.#actual.get(key);
    if (desired === undefined ? actual === undefined : actual !== undefined && this.#equals(desired, actual)) {
      this.#pending.delete(key);
      // Share one object: at 100,000 entries the second copy would be felt.
      if (desired !== undefined && desired !== actual) this.#actual.set(key, desired);
    } else {
      this.#pending.add(key);
    }
  }
}
