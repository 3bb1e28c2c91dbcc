import { ipFromBytes, type IpAddress } from '@switchyard/core';
import { readUint32 } from '@switchyard/native';

const slotBits = 12;

/** Cache of address texts, with a fixed number of slots: making the text is the costly part of reading a flow. */
export class AddressTexts {
  readonly #words: number;
  readonly #keys: Uint32Array;
  readonly #texts: (IpAddress | undefined)[] = [];

  /** `length`: bytes of every address, 4 or 16. */
  constructor(length: 4 | 16) {
    this.#words = length / 4;
    this.#keys = new Uint32Array(this.#words << slotBits);
  }

  /** The address that begins at `at`. */
  read(bytes: Uint8Array, at: number): IpAddress {
    const slot = this.#slot(bytes, at);
    const known = this.#texts[slot];
    if (known !== undefined && this.#isSame(slot, bytes, at)) return known;
    const text = ipFromBytes(bytes.subarray(at, at + this.#words * 4));
    for (let word = 0; word < this.#words; word++) {
      this.#keys[slot * this.#words + word] = readUint32(bytes, at + word * 4);
    }
    this.#texts[slot] = text;
    return text;
  }

  #slot(bytes: Uint8Array, at: number): number {
    let hash = 0;
    for (let word = 0; word < this.#words; word++) {
      hash = Math.imul(hash ^ readUint32(bytes, at + word * 4), 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    return (Math.imul(hash, 0x85ebca6b) >>> (32 - slotBits)) & ((1 << slotBits) - 1);
  }

  #isSame(slot: number, bytes: Uint8Array, at: number): boolean {
    for (let word = 0; word < this.#words; word++) {
      if (this.#keys[slot * this.#words + word] !== readUint32(bytes, at + word * 4)) return false;
    }
    return true;
  }
}
