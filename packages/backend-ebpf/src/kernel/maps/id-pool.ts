import type { Clock } from '@switchyard/core';
import { BitTree } from './bit-tree.ts';
import { Quarantine } from './quarantine.ts';

/** What a process without memory found in the map where the ids stand. */
export interface FoundIds {
  /** Nothing was ever written from here on. */
  readonly end: number;
  isUsed(id: number): boolean;
  /** Whether nobody has used it so far, as far as the map tells. */
  isClean(id: number): boolean;
}

/**
 * Ids from 1 up; 0 is nobody's. The lowest free one is taken, so that few pages of the map are touched. An id that was given back
 * is taken again at the earliest when `quarantineTime` has passed.
 */
export class IdPool {
  readonly #quarantine: Quarantine;
  readonly #untake = (id: number): void => this.untake(id);
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

  /** Those that `found` has not in use are taken at the earliest when `quarantineTime` has passed, but for the clean ones. */
  static recover(clock: Clock, capacity: number, found: FoundIds): IdPool {
    const pool = new IdPool(clock, capacity);
    pool.#end = Math.min(Math.max(1, found.end), capacity);
    for (let id = 1; id < pool.#end; id++) {
      if (found.isUsed(id)) continue;
      if (found.isClean(id)) pool.untake(id);
      else pool.retire(id);
    }
    return pool;
  }

  /** How many could be taken now. */
  get available(): number {
    this.#release();
    return this.#free + (this.#capacity - this.#end);
  }

  /** How many wait until they may be taken again. */
  get quarantined(): number {
    return this.#quarantine.size;
  }

  /** All that were ever taken are below. */
  get end(): number {
    return this.#end;
  }

  /** A free id, or 0 if there is none. */
  take(): number {
    this.#release();
    const returned = this.#free === 0 ? 0 : this.#returned.first();
    if (returned > 0) {
      this.#returned.delete(returned);
      this.#free--;
      return returned;
    }
    return this.#end < this.#capacity ? this.#end++ : 0;
  }

  /** Gives an id back that programs may have seen. */
  retire(id: number): void {
    this.#quarantine.add(id);
  }

  /** Gives an id back that was taken and never shown to anybody. */
  untake(id: number): void {
    this.#returned.add(id);
    this.#free++;
  }

  /** The map has become larger; ids stay. */
  grow(capacity: number): void {
    const returned = new BitTree(capacity);
    for (const id of this.#returned.members()) returned.add(id);
    this.#returned = returned;
    this.#capacity = capacity;
  }

  #release(): void {
    this.#quarantine.release(this.#untake);
  }
}
