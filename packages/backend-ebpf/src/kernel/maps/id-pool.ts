import type { Clock } from '@switchyard/core';
import { BitTree } from './bit-tree.ts';
import { Quarantine } from './quarantine.ts';

/** Ids that a new process found in the map. */
export interface FoundIds {
  /** Records from here on were never written. */
  readonly end: number;
  isUsed(id: number): boolean;
  /** Whether the id was never used, judged by the map's content. */
  isClean(id: number): boolean;
}

/** Ids from 1 up, the lowest free one first. A retired id is allocated again after `quarantineTime`. */
export class IdPool {
  readonly #quarantine: Quarantine;
  readonly #freeId = (id: number): void => this.free(id);
  #returned: BitTree;
  #capacity: number;
  #end = 1;
  #free = 0;

  /** Ids below `capacity`, which is the number of entries of the map they stand in. */
  constructor(clock: Clock, capacity: number) {
    this.#quarantine = new Quarantine(clock);
    this.#returned = new BitTree(capacity);
    this.#capacity = capacity;
  }

  /** Restores a pool. Unused ids wait for `quarantineTime`, except clean ones. */
  static recover(clock: Clock, capacity: number, found: FoundIds): IdPool {
    const pool = new IdPool(clock, capacity);
    pool.#end = Math.min(Math.max(1, found.end), capacity);
    for (let id = 1; id < pool.#end; id++) {
      if (found.isUsed(id)) continue;
      if (found.isClean(id)) pool.free(id);
      else pool.retire(id);
    }
    return pool;
  }

  /** Number of ids that can be allocated now. */
  get available(): number {
    this.#release();
    return this.#free + (this.#capacity - this.#end);
  }

  /** Upper bound of ids ever allocated, exclusive. */
  get end(): number {
    return this.#end;
  }

  /** A free id, or 0 if there is none. */
  allocate(): number {
    this.#release();
    const returned = this.#free === 0 ? 0 : this.#returned.first();
    if (returned > 0) {
      this.#returned.delete(returned);
      this.#free--;
      return returned;
    }
    return this.#end < this.#capacity ? this.#end++ : 0;
  }

  /** Frees an id that programs may have read: it goes through quarantine. */
  retire(id: number): void {
    this.#quarantine.add(id);
  }

  /** Frees an id that was never published. */
  free(id: number): void {
    this.#returned.add(id);
    this.#free++;
  }

  /** Adapts to a larger map; ids stay. */
  grow(capacity: number): void {
    const returned = new BitTree(capacity);
    for (const id of this.#returned.members()) returned.add(id);
    this.#returned = returned;
    this.#capacity = capacity;
  }

  #release(): void {
    this.#quarantine.release(this.#freeId);
  }
}
