import type { Clock } from '@switchyard/core';
import { BitTree } from './bit-tree.ts';
import { Quarantine } from './quarantine.ts';

/** Ranges have up to 2^16 slots: a set has at most 65,535 endpoints. */
const largestOrder = 16;
/** A range in quarantine as one number: base * 32 + order. */
const orderBits = 32;

/**
 * Ranges of slots by the buddy method: a range has a power of two of slots and begins at a multiple of its length; two free halves join
 * at once. So a range is known by its first slot and its number of used slots, which are in the service's record. Allocates the smallest
 * fit, of these the lowest. A retired range is allocated again, also as part of another, after `quarantineTime` at the earliest.
 *
 * Memory: two bits per slot. At most half of a range is unused; fragmentation is bounded as in any buddy allocator, and the map grows
 * before a request fails.
 */
export class SlotPool {
  readonly #quarantine: Quarantine;
  readonly #putRange = (range: number): void => this.#put(Math.floor(range / orderBits), range % orderBits);
  #free: readonly BitTree[] = [];
  #capacity = 0;
  #available = 0;
  #end = 0;

  constructor(clock: Clock, capacity: number) {
    this.#quarantine = new Quarantine(clock);
    this.grow(capacity);
  }

  /** Number of free slots, not necessarily in one range. */
  get available(): number {
    this.#release();
    return this.#available;
  }

  /** Upper bound of slots ever allocated, exclusive. */
  get end(): number {
    return this.#end;
  }

  /** The first slot of a range of at least `count` (1 to 65,536), or -1 if there is none. */
  allocate(count: number): number {
    this.#release();
    const order = orderOf(count);
    for (let from = order; from <= largestOrder; from++) {
      const block = this.#tree(from).first();
      if (block < 0) continue;
      this.#tree(from).delete(block);
      this.#available -= 1 << from;
      const base = block * 2 ** from;
      for (let half = from - 1; half >= order; half--) this.#put(base + 2 ** half, half);
      this.#end = Math.max(this.#end, base + 2 ** order);
      return base;
    }
    return -1;
  }

  /** Frees a range that `allocate` returned for `count` and programs may have read: it goes through quarantine. */
  retire(base: number, count: number): void {
    this.#quarantine.add(base * orderBits + orderOf(count));
  }

  /** Frees a range that was never published. */
  free(base: number, count: number): void {
    this.#put(base, orderOf(count));
  }

  /** Claims a range that was found in use; false if it is no valid range or part of it is allocated. */
  claim(base: number, count: number): boolean {
    const order = orderOf(count);
    if (base % 2 ** order !== 0 || base + count > this.#capacity) return false;
    for (let from = order; from <= largestOrder; from++) {
      const block = Math.floor(base / 2 ** from);
      if (!this.#tree(from).has(block)) continue;
      this.#tree(from).delete(block);
      this.#available -= 1 << from;
      for (let half = from - 1; half >= order; half--) {
        const mine = Math.floor(base / 2 ** half);
        this.#put((mine ^ 1) * 2 ** half, half);
      }
      this.#end = Math.max(this.#end, base + 2 ** order);
      return true;
    }
    return false;
  }

  /** Puts all free slots below `end` into quarantine, because they may have been in use a moment ago. */
  retireBelow(end: number): void {
    for (let order = largestOrder; order >= 0; order--) {
      const size = 2 ** order;
      for (const block of this.#tree(order).members()) {
        const base = block * size;
        if (base >= end) break;
        this.#tree(order).delete(block);
        this.#available -= size;
        if (base + size <= end) this.#quarantine.add(base * orderBits + order);
        else {
          // The next round handles the halves.
          this.#add(base, order - 1);
          this.#add(base + size / 2, order - 1);
        }
      }
    }
    this.#end = Math.max(this.#end, end);
  }

  /** Adapts to a larger map; ranges stay. */
  grow(capacity: number): void {
    const before = this.#free;
    this.#free = Array.from({ length: largestOrder + 1 }, (_, order) => {
      const tree = new BitTree(Math.max(1, Math.floor(capacity / 2 ** order)));
      for (const block of before[order]?.members() ?? []) tree.add(block);
      return tree;
    });
    const from = this.#capacity;
    this.#capacity = capacity;
    for (let base = from; base < capacity;) {
      let order = largestOrder;
      while (base % 2 ** order !== 0 || base + 2 ** order > capacity) order--;
      this.#put(base, order);
      base += 2 ** order;
    }
  }

  #tree(order: number): BitTree {
    return this.#free[order] as BitTree; // orders are 0 to largestOrder
  }

  #add(base: number, order: number): void {
    this.#tree(order).add(base / 2 ** order);
    this.#available += 2 ** order;
  }

  /** Frees a block and joins it with its other half while that is free too. */
  #put(base: number, order: number): void {
    this.#available += 2 ** order;
    let block = base / 2 ** order;
    let at = order;
    while (at < largestOrder && this.#tree(at).has(block ^ 1)) {
      this.#tree(at).delete(block ^ 1);
      block >>>= 1;
      at++;
    }
    this.#tree(at).add(block);
  }

  #release(): void {
    this.#quarantine.release(this.#putRange);
  }
}

/** The smallest order whose ranges hold `count` slots. */
function orderOf(count: number): number {
  return count <= 1 ? 0 : 32 - Math.clz32(count - 1);
}
