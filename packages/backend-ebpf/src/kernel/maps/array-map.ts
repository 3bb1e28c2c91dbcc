import type { BpfMap } from '@switchyard/native';

/** 8-byte words that are compared at once: a page. */
const blockWords = 512;

/** Callback after each stored word, for tests that check the maps between two stores. */
export type AfterStore = (() => void) | undefined;

/**
 * An mmapped array of the kernel and a copy of what was written to it. Writes 8 bytes at a time, and only words that differ: one store
 * for words that programs may read, two for words that no program can reach yet, because a store of 8 bytes allocates an
 * object. The copy is as large as the array, but pages that were never written cost nothing.
 */
export class ArrayMap {
  /** The copy. Write to it by `set` and `prepare` alone. */
  words: Uint32Array = new Uint32Array();
  /** Words stored to the kernel so far. */
  stores = 0;
  readonly #afterStore: AfterStore;
  #copy64: BigUint64Array = new BigUint64Array();
  #kernel64: BigUint64Array = new BigUint64Array();
  /** Halves of words as signed numbers, which the engine never stores as objects. */
  #copy32: Int32Array = new Int32Array();
  #kernel32: Int32Array = new Int32Array();
  #bytes: Uint8Array = new Uint8Array();
  /** No word from here on was ever written. */
  #end = 0;

  constructor(map: BpfMap, afterStore?: AfterStore) {
    this.#afterStore = afterStore;
    this.attach(map);
  }

  /** How many 8-byte words there are. */
  get length(): number {
    return this.#kernel64.length;
  }

  get end(): number {
    return this.#end;
  }

  /** Replaces the map by one that is at least as large and has the same content. */
  attach(map: BpfMap): void {
    const bytes = map.values();
    this.#bytes = bytes;
    this.#kernel64 = new BigUint64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >>> 3);
    this.#kernel32 = new Int32Array(bytes.buffer, bytes.byteOffset, this.#kernel64.length * 2);
    if (this.#copy64.length === this.#kernel64.length) return;
    const copy = new BigUint64Array(this.#kernel64.length);
    copy.set(this.#copy64.subarray(0, this.#end));
    this.#copy64 = copy;
    this.#copy32 = new Int32Array(copy.buffer);
    this.words = new Uint32Array(copy.buffer);
  }

  /** Replaces the copy by the kernel's content. */
  adopt(): void {
    this.#copy64.fill(0n, 0, this.#end);
    let end = this.#endOfZeros();
    while (end > 0 && this.#kernel64[end - 1] === 0n) end--;
    this.#copy64.set(this.#kernel64.subarray(0, end));
    this.#end = end;
  }

  /** Stores a word, its lower and its upper half, at once, unless it is the same already. */
  set(word: number, low: number, high: number): void {
    if (this.#note(word, low, high)) this.#store(word);
  }

  /** As `set`, half by half: for a word that no program can reach before a later `set` leads to it. */
  prepare(word: number, low: number, high: number): void {
    if (!this.#note(word, low, high)) return;
    this.#kernel32[word * 2] = low;
    this.#afterStore?.();
    this.#kernel32[word * 2 + 1] = high;
    this.stores++;
    this.#afterStore?.();
  }

  /** Whether the kernel differs somewhere in a part. */
  differs(from: number, to: number): boolean {
    const end = Math.min(to, this.#end) * 8;
    if (from * 8 >= end) return false;
    const copy = new Uint8Array(this.#copy64.buffer, from * 8, end - from * 8);
    return Buffer.compare(copy, this.#bytes.subarray(from * 8, end)) !== 0;
  }

  /** The words in a part where the kernel differs. */
  *differences(from: number, to: number): Generator<number, void, undefined> {
    for (let word = from; word < Math.min(to, this.#end); word++) {
      if (this.#kernel64[word] !== this.#copy64[word]) yield word;
    }
  }

  restore(word: number): void {
    this.#store(word);
  }

  /** A word from which on, at least, the kernel has nothing but zeros: whole blocks are compared at once. */
  #endOfZeros(): number {
    const zeros = new Uint8Array(blockWords * 8);
    let end = this.#kernel64.length;
    while (end >= blockWords) {
      const block = this.#bytes.subarray((end - blockWords) * 8, end * 8);
      if (Buffer.compare(block, zeros) !== 0) break;
      end -= blockWords;
    }
    return end;
  }

  /** Writes to the copy; whether that changed it. */
  #note(word: number, low: number, high: number): boolean {
    const copy = this.#copy32;
    const at = word * 2;
    if (copy[at] === (low | 0) && copy[at + 1] === (high | 0)) return false;
    copy[at] = low;
    copy[at + 1] = high;
    if (word >= this.#end) this.#end = word + 1;
    return true;
  }

  #store(word: number): void {
    Atomics.store(this.#kernel64, word, this.#copy64[word] ?? 0n);
    this.stores++;
    this.#afterStore?.();
  }
}
