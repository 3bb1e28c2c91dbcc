import type { BpfMap } from '@switchyard/native';

/** What to call when one word was stored: tests look at the maps after each. */
export type AfterStore = (() => void) | undefined;

/**
 * An mmapped array of the kernel and a copy of what was written to it. Everything is written 8 bytes at a time, each with one
 * store, and only where it differs. The copy is as large as the array, but memory that was never written to costs nothing.
 */
export class ArrayMap {
  /** The copy. Write to it by `set` alone. */
  words: Uint32Array = new Uint32Array();
  /** Stores to the kernel so far. */
  stores = 0;
  readonly #afterStore: AfterStore;
  #copy64: BigUint64Array = new BigUint64Array();
  #kernel64: BigUint64Array = new BigUint64Array();
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

  /** No word from here on was ever written. */
  get end(): number {
    return this.#end;
  }

  /** From now on the words are in this map, which is at least as large and has the same content. */
  attach(map: BpfMap): void {
    const bytes = map.values();
    this.#bytes = bytes;
    this.#kernel64 = new BigUint64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >>> 3);
    if (this.#copy64.length === this.#kernel64.length) return;
    const copy = new BigUint64Array(this.#kernel64.length);
    copy.set(this.#copy64.subarray(0, this.#end));
    this.#copy64 = copy;
    this.words = new Uint32Array(copy.buffer);
  }

  /** Forgets the copy and takes what the kernel has. */
  adopt(): void {
    this.#copy64.fill(0n, 0, this.#end);
    let end = this.#kernel64.length;
    while (end > 0 && this.#kernel64[end - 1] === 0n) end--;
    this.#copy64.set(this.#kernel64.subarray(0, end));
    this.#end = end;
  }

  /** Stores a word, its lower and its upper half, unless it is the same already. */
  set(word: number, low: number, high: number): void {
    const at = word * 2;
    if (this.words[at] === low >>> 0 && this.words[at + 1] === high >>> 0) return;
    this.words[at] = low;
    this.words[at + 1] = high;
    this.#store(word);
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

  /** Writes a word again as it was. */
  restore(word: number): void {
    this.#store(word);
  }

  #store(word: number): void {
    if (word >= this.#end) this.#end = word + 1;
    Atomics.store(this.#kernel64, word, this.#copy64[word] ?? 0n);
    this.stores++;
    this.#afterStore?.();
  }
}
