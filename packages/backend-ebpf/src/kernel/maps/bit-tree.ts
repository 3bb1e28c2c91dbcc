/** A set of small numbers as a tree of bits; finds its lowest member quickly. A million members take 129 kB. */
export class BitTree {
  readonly #levels: readonly Int32Array[];

  /** For numbers below `capacity`; empty at first. */
  constructor(capacity: number) {
    const levels: Int32Array[] = [];
    let words = Math.max(1, capacity);
    do {
      words = Math.ceil(words / 32);
      levels.push(new Int32Array(words));
    } while (words > 1);
    this.#levels = levels;
  }

  has(member: number): boolean {
    return (((this.#levels[0]?.[member >>> 5] ?? 0) >>> (member & 31)) & 1) === 1;
  }

  add(member: number): void {
    let index = member;
    for (const level of this.#levels) {
      const word = index >>> 5;
      const before = level[word] ?? 0;
      level[word] = before | (1 << (index & 31));
      if (before !== 0) return;
      index = word;
    }
  }

  delete(member: number): void {
    let index = member;
    for (const level of this.#levels) {
      const word = index >>> 5;
      const after = (level[word] ?? 0) & ~(1 << (index & 31));
      level[word] = after;
      if (after !== 0) return;
      index = word;
    }
  }

  /** All members, lowest first, as they are now. */
  members(): readonly number[] {
    const found: number[] = [];
    const [words = new Int32Array()] = this.#levels;
    for (let word = 0; word < words.length; word++) {
      for (let bits = words[word] ?? 0; bits !== 0; bits &= bits - 1) found.push(word * 32 + lowestBit(bits));
    }
    return found;
  }

  /** The lowest member, or -1. */
  first(): number {
    let index = 0;
    for (let at = this.#levels.length - 1; at >= 0; at--) {
      const word = this.#levels[at]?.[index] ?? 0;
      if (word === 0) return -1;
      index = index * 32 + lowestBit(word);
    }
    return index;
  }
}

function lowestBit(word: number): number {
  return 31 - Math.clz32(word & -word);
}
