import { constants } from 'node:os';
import { isLittleEndian } from '../netlink/byte-order.ts';

const { E2BIG, EINVAL, ENOENT, ENOSPC } = constants.errno;

/** How one kind of map keeps its elements. Errors are positive errno numbers, 0 is success. */
export interface Elements {
  /** The value itself, not a copy. */
  lookup(key: Uint8Array): Uint8Array | undefined;
  update(key: Uint8Array, value: Uint8Array): number;
  /** `ENOENT` when it was not there. */
  delete(key: Uint8Array): number;
  all(): readonly (readonly [key: Uint8Array, value: Uint8Array])[];
}

/** Values by index, all there from the start. */
export class ArrayElements implements Elements {
  readonly memory: Uint8Array;
  readonly #count: number;
  readonly #valueSize: number;
  readonly #stride: number;

  constructor(count: number, valueSize: number, stride: number) {
    this.#count = count;
    this.#valueSize = valueSize;
    this.#stride = stride;
    this.memory = new Uint8Array(new ArrayBuffer(count * stride));
  }

  lookup(key: Uint8Array): Uint8Array | undefined {
    const index = numberAt(key);
    if (index >= this.#count) return undefined;
    return this.memory.subarray(index * this.#stride, index * this.#stride + this.#valueSize);
  }

  update(key: Uint8Array, value: Uint8Array): number {
    const place = this.lookup(key);
    if (place === undefined) return E2BIG;
    place.set(value);
    return 0;
  }

  delete(): number {
    return EINVAL;
  }

  all(): readonly (readonly [Uint8Array, Uint8Array])[] {
    return Array.from({ length: this.#count }, (_, index) => {
      const key = new Uint8Array(Uint32Array.of(index).buffer);
      return [key, this.lookup(key) ?? key] as const;
    });
  }
}

/** Elements by key, in the order of their last use. */
export class HashElements implements Elements {
  readonly #capacity: number;
  readonly #whenFull: 'refuses' | 'forgets';
  readonly #byKey = new Map<string, { readonly key: Uint8Array; readonly value: Uint8Array }>();

  constructor(capacity: number, whenFull: 'refuses' | 'forgets') {
    this.#capacity = capacity;
    this.#whenFull = whenFull;
  }

  lookup(key: Uint8Array): Uint8Array | undefined {
    const text = textOf(key);
    const found = this.#byKey.get(text);
    if (found === undefined || this.#whenFull === 'refuses') return found?.value;
    this.#byKey.delete(text); // it was used: others are forgotten before it
    this.#byKey.set(text, found);
    return found.value;
  }

  update(key: Uint8Array, value: Uint8Array): number {
    const text = textOf(key);
    const isThere = this.#byKey.has(text);
    if (!isThere && !this.#makeRoom()) return E2BIG;
    this.#byKey.delete(text); // the last one written is the last to be forgotten
    this.#byKey.set(text, { key: key.slice(), value: value.slice() });
    return 0;
  }

  delete(key: Uint8Array): number {
    return this.#byKey.delete(textOf(key)) ? 0 : ENOENT;
  }

  all(): readonly (readonly [Uint8Array, Uint8Array])[] {
    return [...this.#byKey.values()].map(({ key, value }) => [key, value] as const);
  }

  /** For one more element; false where there is none. */
  #makeRoom(): boolean {
    if (this.#byKey.size < this.#capacity) return true;
    if (this.#whenFull === 'refuses') return false;
    const [oldest = ''] = this.#byKey.keys();
    return this.#byKey.delete(oldest);
  }
}

/** Values by prefix: a number of bits in the machine's byte order, then bytes. */
export class LpmElements implements Elements {
  readonly #capacity: number;
  readonly #byPrefix = new Map<string, { readonly key: Uint8Array; readonly value: Uint8Array }>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  lookup(key: Uint8Array): Uint8Array | undefined {
    const most = numberAt(key);
    if (most > maxBits(key)) return undefined;
    for (let bits = most; bits >= 0; bits--) {
      const found = this.#byPrefix.get(prefixOf(key, bits));
      if (found !== undefined) return found.value;
    }
    return undefined;
  }

  update(key: Uint8Array, value: Uint8Array): number {
    const bits = numberAt(key);
    if (bits > maxBits(key)) return EINVAL;
    const prefix = prefixOf(key, bits);
    const isThere = this.#byPrefix.has(prefix);
    if (!isThere && this.#byPrefix.size >= this.#capacity) return ENOSPC;
    this.#byPrefix.set(prefix, { key: key.slice(), value: value.slice() });
    return 0;
  }

  delete(key: Uint8Array): number {
    const bits = numberAt(key);
    if (bits > maxBits(key)) return EINVAL;
    return this.#byPrefix.delete(prefixOf(key, bits)) ? 0 : ENOENT;
  }

  all(): readonly (readonly [Uint8Array, Uint8Array])[] {
    return [...this.#byPrefix.values()].map(({ key, value }) => [key, value] as const);
  }
}

function numberAt(key: Uint8Array): number {
  return new DataView(key.buffer, key.byteOffset, 4).getUint32(0, isLittleEndian);
}

function maxBits(key: Uint8Array): number {
  return (key.length - 4) * 8;
}

/** The first `bits` bits behind the length, and how many they are. */
function prefixOf(key: Uint8Array, bits: number): string {
  const bytes = key.slice(4, 4 + Math.ceil(bits / 8));
  const rest = bits % 8;
  const last = bytes.length - 1;
  if (rest !== 0) bytes[last] = (bytes[last] ?? 0) & (0xff << (8 - rest));
  return `${bits}/${textOf(bytes)}`;
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}
