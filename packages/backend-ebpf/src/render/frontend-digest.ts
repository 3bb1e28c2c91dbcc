/** Words of a key of the map frontends. */
export const keyWords = 6;
const valueWords = 2;

/** Sums that do not depend on order: equal for the same entries, but for 2^-64. A quarter of the cost of looking up. */
export class FrontendDigest {
  #first = 0;
  #second = 0;
  #count = 0;
  /** Sums of the last mixed entry. */
  #mixedFirst = 0;
  #mixedSecond = 0;

  /** Adds an entry, the words of its key from `keyAt` on, those of its value from `valueAt` on. */
  add(keys: Uint32Array, keyAt: number, values: Uint32Array, valueAt: number): void {
    this.#mix(keys, keyAt, values, valueAt);
    this.#first = (this.#first + this.#mixedFirst) | 0;
    this.#second = (this.#second + this.#mixedSecond) | 0;
    this.#count++;
  }

  /** Removes an added entry. */
  remove(keys: Uint32Array, keyAt: number, values: Uint32Array, valueAt: number): void {
    this.#mix(keys, keyAt, values, valueAt);
    this.#first = (this.#first - this.#mixedFirst) | 0;
    this.#second = (this.#second - this.#mixedSecond) | 0;
    this.#count--;
  }

  /** Whether both are of the same entries. */
  equals(other: FrontendDigest): boolean {
    return this.#first === other.#first && this.#second === other.#second && this.#count === other.#count;
  }

  #mix(keys: Uint32Array, keyAt: number, values: Uint32Array, valueAt: number): void {
    let first = 0;
    let second = 0;
    for (let word = 0; word < keyWords; word++) {
      const bits = keys[keyAt + word] ?? 0;
      first = mixFirst(first, bits);
      second = mixSecond(second, bits);
    }
    for (let word = 0; word < valueWords; word++) {
      const bits = values[valueAt + word] ?? 0;
      first = mixFirst(first, bits);
      second = mixSecond(second, bits);
    }
    this.#mixedFirst = first;
    this.#mixedSecond = second;
  }
}

/** The multipliers are odd and have nothing in common. */
function mixFirst(sum: number, bits: number): number {
  const mixed = Math.imul(sum ^ bits, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

function mixSecond(sum: number, bits: number): number {
  const mixed = Math.imul((sum + bits) | 0, 0x85ebca6b);
  return mixed ^ (mixed >>> 13);
}
