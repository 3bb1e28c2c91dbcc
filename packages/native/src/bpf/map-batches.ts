import { constants } from 'node:os';
import { NativeError } from '../native-error.ts';
import { Attribute, bpfError, tryBpf } from './call.ts';
import type { BpfEntries, BpfMap } from './types.ts';

const { EINTR, ENOENT, ENOSPC } = constants.errno;

/** A map as batches see it. */
interface BatchMap extends BpfMap {
  readonly fd: number;
  readonly transferredSize: number;
}

interface Elements {
  readonly keys: Uint8Array;
  readonly values: Uint8Array;
  readonly count: number;
}

/** The error of a batch that ended after `written` of `count` elements. */
export function batchError(
  name: string,
  errno: number,
  done: { readonly written: number; readonly count: number },
): NativeError {
  const attempt = `cannot write ${done.count} elements into the BPF map ${name}, only ${done.written}`;
  return new NativeError(attempt, { errno, syscall: 'bpf MAP_UPDATE_BATCH' });
}

/** As `BpfMap.updateBatch`; lengths were checked. */
export function updateBatch(map: BatchMap, { keys, values, count }: Elements): void {
  const attribute = batchAttribute(map, count);
  const result = tryBpf('MAP_UPDATE_BATCH', { attempt: '', attribute, pointers: [16, keys, 24, values] });
  if (result !== 0) throw batchError(map.shape.name, -result, { written: attribute.getU32(32), count });
}

function batchAttribute(map: BatchMap, count: number): Attribute {
  return new Attribute(56).u32(32, count).u32(36, map.fd);
}

const maxAttempts = 10;
/** Most maps that are read at once are small, and read often: they grow with what is found. */
const firstCapacity = 256;
const sliceLength = 1024;

/** As `BpfMap.entries`. */
export function readEntries(map: BatchMap): BpfEntries {
  for (let attempt = 1; ; attempt++) {
    const collected = new Collected(map, firstCapacity);
    try {
      for (const count of readBatches(map, collected)) {
        collected.add(count);
        if (collected.room < firstCapacity / 4) collected.grow();
      }
      return collected.entries();
    } catch (error) {
      if (!(error instanceof NativeError) || error.errno !== EINTR || attempt === maxAttempts) throw error;
    }
  }
}

/** As `BpfMap.slices`. */
export function* readSlices(map: BatchMap): Generator<BpfEntries, void, undefined> {
  const slice = new Collected(map, sliceLength);
  for (const count of readBatches(map, slice)) yield slice.first(count);
}

/** Reads each batch into the free room of `into` and yields its length. */
function* readBatches(map: BatchMap, into: Collected): Generator<number, void, undefined> {
  // Position of the next batch: the number of a bucket in hash tables, the last key in other maps.
  const here = new Uint8Array(Math.max(map.shape.keySize, 8));
  const next = new Uint8Array(here.length);
  for (let isFirst = true; ;) {
    const attribute = batchAttribute(map, into.room);
    const pointers = [...(isFirst ? [] : [0, here]), 8, next, 16, into.freeKeys(), 24, into.freeValues()];
    const result = tryBpf('MAP_LOOKUP_BATCH', { attempt: '', attribute, pointers });
    if (result === -ENOSPC) {
      into.grow(); // a bucket has more than there is room for
      continue;
    }
    if (result !== 0 && result !== -ENOENT) {
      throw bpfError('MAP_LOOKUP_BATCH', `cannot read the BPF map ${map.shape.name}`, -result);
    }
    yield attribute.getU32(32);
    if (result === -ENOENT) return;
    here.set(next);
    isFirst = false;
  }
}

/** Elements as they come, in arrays that grow. */
class Collected {
  readonly #keySize: number;
  readonly #valueSize: number;
  #capacity: number;
  #count = 0;
  #keys: Uint8Array;
  #values: Uint8Array;

  constructor({ shape, transferredSize }: BatchMap, capacity: number) {
    this.#keySize = shape.keySize;
    this.#valueSize = transferredSize;
    this.#capacity = Math.min(shape.maxEntries, capacity);
    this.#keys = new Uint8Array(this.#capacity * this.#keySize);
    this.#values = new Uint8Array(this.#capacity * this.#valueSize);
  }

  get room(): number {
    return this.#capacity - this.#count;
  }

  freeKeys(): Uint8Array {
    return this.#keys.subarray(this.#count * this.#keySize);
  }

  freeValues(): Uint8Array {
    return this.#values.subarray(this.#count * this.#valueSize);
  }

  add(count: number): void {
    this.#count += count;
  }

  grow(): void {
    this.#capacity *= 2;
    const { keys, values } = this.entries();
    this.#keys = new Uint8Array(this.#capacity * this.#keySize);
    this.#keys.set(keys);
    this.#values = new Uint8Array(this.#capacity * this.#valueSize);
    this.#values.set(values);
  }

  entries(): BpfEntries {
    return this.first(this.#count);
  }

  /** The first `count` elements, also those that were not counted. */
  first(count: number): BpfEntries {
    return {
      count,
      keys: this.#keys.subarray(0, count * this.#keySize),
      values: this.#values.subarray(0, count * this.#valueSize),
    };
  }
}
