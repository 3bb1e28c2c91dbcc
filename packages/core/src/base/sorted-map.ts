/** Largest number of values in one chunk; a larger chunk is split. */
const chunkLimit = 128;

/** Differences between two maps, by identity of the values, in key order. */
export interface SortedMapChanges<K extends string, V> {
  /** Added or replaced values. */
  readonly upserted: readonly V[];
  readonly removed: readonly K[];
}

/**
 * Immutable map in key order (code unit order) whose versions share what did not change.
 *
 * A function returns the key of a value. Values lie in sorted chunks of at most 128; a new version copies the
 * touched chunks and the list of chunks, so one change at 10,000 values copies some 200 references
 * instead of 10,000, and two versions are compared by skipping the chunks they share.
 */
export class SortedMap<K extends string, V> implements ReadonlyMap<K, V> {
  readonly size: number;
  readonly #keyOf: (value: V) => K;
  /** No chunk is empty. */
  readonly #chunks: readonly (readonly V[])[];

  private constructor(keyOf: (value: V) => K, chunks: readonly (readonly V[])[], size: number) {
    this.#keyOf = keyOf;
    this.#chunks = chunks;
    this.size = size;
  }

  /** The map without values; `keyOf` must be pure and stays with all versions made from it. */
  static empty<K extends string, V>(keyOf: (value: V) => K): SortedMap<K, V> {
    return new SortedMap(keyOf, [], 0);
  }

  /** A map of `values`; of two values with one key, the later wins. */
  static of<K extends string, V>(keyOf: (value: V) => K, values: Iterable<V>): SortedMap<K, V> {
    return SortedMap.empty(keyOf).with(values, []);
  }

  /**
   * A version with `upserts` set and `removals` gone (an upsert of a removed key wins). Returns this
   * very object if that changes nothing.
   */
  with(upserts: Iterable<V>, removals: Iterable<K>): SortedMap<K, V> {
    const edits = new Map<K, V | undefined>();
    for (const key of removals) if (this.has(key)) edits.set(key, undefined);
    for (const value of upserts) {
      const key = this.#keyOf(value);
      if (this.get(key) === value) edits.delete(key);
      else edits.set(key, value);
    }
    return edits.size === 0 ? this : this.#applied(edits);
  }

  get(key: K): V | undefined {
    const chunk = this.#chunks[this.#chunkIndex(key)];
    if (chunk === undefined) return undefined;
    const value = chunk[lowerBound(chunk, key, this.#keyOf)];
    return value !== undefined && this.#keyOf(value) === key ? value : undefined;
  }

  has(key: K): boolean {
    return this.get(key) !== undefined;
  }

  /** Values from the first key that is not below `start`, in key order. `start` need not be a key. */
  *valuesFrom(start: string): Generator<V, undefined, unknown> {
    const first = this.#chunkIndex(start);
    for (let index = first; index < this.#chunks.length; index++) {
      const chunk = this.#chunks[index] ?? [];
      for (let at = index === first ? lowerBound(chunk, start, this.#keyOf) : 0; at < chunk.length; at++) {
        yield chunk[at] as V;
      }
    }
    return undefined;
  }

  *values(): Generator<V, undefined, unknown> {
    for (const chunk of this.#chunks) yield* chunk;
    return undefined;
  }

  *keys(): Generator<K, undefined, unknown> {
    for (const value of this.values()) yield this.#keyOf(value);
    return undefined;
  }

  *entries(): Generator<[K, V], undefined, unknown> {
    for (const value of this.values()) yield [this.#keyOf(value), value];
    return undefined;
  }

  [Symbol.iterator](): Generator<[K, V], undefined, unknown> {
    return this.entries();
  }

  forEach(callback: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const value of this.values()) callback(value, this.#keyOf(value), this);
  }

  /** Returns the changes since `previous`, in time proportional to the number of chunks plus the changes. */
  changesSince(previous: SortedMap<K, V>): SortedMapChanges<K, V> {
    const { before, after } = withoutCommonEnds(previous.#chunks, this.#chunks);
    const old = new Set(before);
    const kept = new Set<readonly V[]>();
    const upserted: V[] = [];
    const removed: K[] = [];
    for (const chunk of after) {
      if (old.has(chunk)) kept.add(chunk);
      else for (const value of chunk) if (previous.get(this.#keyOf(value)) !== value) upserted.push(value);
    }
    for (const chunk of before) {
      if (kept.has(chunk)) continue;
      for (const value of chunk) if (!this.has(this.#keyOf(value))) removed.push(this.#keyOf(value));
    }
    return { upserted, removed };
  }

  /** Index of the last chunk that starts at or below `key`, or 0. */
  #chunkIndex(key: string): number {
    let low = 0;
    let high = this.#chunks.length;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      const first = this.#chunks[middle]?.[0] as V;
      if (this.#keyOf(first) <= key) low = middle;
      else high = middle;
    }
    return low;
  }

  #applied(edits: ReadonlyMap<K, V | undefined>): SortedMap<K, V> {
    const keys = [...edits.keys()].sort();
    const chunks: (readonly V[])[] = [];
    let copied = 0;
    for (let at = 0; at < keys.length;) {
      const index = this.#chunkIndex(keys[at] ?? '');
      const end = this.#endOfChunk(keys, at, index);
      while (copied < index) chunks.push(this.#chunks[copied++] ?? []);
      chunks.push(...cut(this.#merged(this.#chunks[index] ?? [], keys.slice(at, end), edits)));
      copied = index + 1;
      at = end;
    }
    while (copied < this.#chunks.length) chunks.push(this.#chunks[copied++] ?? []);
    let size = 0;
    for (const chunk of chunks) size += chunk.length;
    return new SortedMap(this.#keyOf, chunks, size);
  }

  /** Returns the number of sorted `keys` before the chunk after `index`; always more than `at`. */
  #endOfChunk(keys: readonly K[], at: number, index: number): number {
    const next = this.#chunks[index + 1]?.[0];
    if (next === undefined) return keys.length;
    const limit = this.#keyOf(next);
    let end = at + 1;
    while (end < keys.length && (keys[end] ?? '') < limit) end++;
    return end;
  }

  /** `chunk` with the edits of `keys` (sorted, all inside this chunk's range). */
  #merged(chunk: readonly V[], keys: readonly K[], edits: ReadonlyMap<K, V | undefined>): readonly V[] {
    const merged: V[] = [];
    let from = 0;
    for (const key of keys) {
      const at = lowerBound(chunk, key, this.#keyOf, from);
      for (let index = from; index < at; index++) merged.push(chunk[index] as V);
      const there = chunk[at];
      from = there !== undefined && this.#keyOf(there) === key ? at + 1 : at;
      const value = edits.get(key);
      if (value !== undefined) merged.push(value);
    }
    for (let index = from; index < chunk.length; index++) merged.push(chunk[index] as V);
    return merged;
  }
}

/** First index at or after `from` whose key is not below `key`. */
function lowerBound<V>(chunk: readonly V[], key: string, keyOf: (value: V) => string, from = 0): number {
  let low = from;
  let high = chunk.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (keyOf(chunk[middle] as V) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns two lists without their common start and end: after one change, one or two elements remain. */
function withoutCommonEnds<T>(
  before: readonly T[],
  after: readonly T[],
): { readonly before: readonly T[]; readonly after: readonly T[] } {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start++;
  let end = 0;
  while (end < shorter - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  return { before: before.slice(start, before.length - end), after: after.slice(start, after.length - end) };
}

/** Non-empty chunks of at most `chunkLimit` values, of about equal size. */
function cut<V>(values: readonly V[]): readonly (readonly V[])[] {
  if (values.length === 0) return [];
  if (values.length <= chunkLimit) return [values];
  const parts = Math.ceil(values.length / (chunkLimit / 2));
  const length = Math.ceil(values.length / parts);
  return Array.from({ length: parts }, (_, part) => values.slice(part * length, (part + 1) * length)).filter(
    (chunk) => chunk.length > 0,
  );
}
