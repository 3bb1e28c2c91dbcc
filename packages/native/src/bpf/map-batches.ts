import { constants } from 'node:os';
import { ENOTSUPP, NativeError } from '../native-error.ts';
import { Attribute, bpfError, tryBpf } from './call.ts';
import type { BpfEntries, BpfMap } from './types.ts';

const { EINTR, EINVAL, ENOENT, ENOSPC } = constants.errno;

/** A map as batches see it. */
interface BatchMap extends BpfMap {
  readonly fd: number;
  readonly transferredSize: number;
}

/** Elements one after the other. */
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

/** Kernels before 5.6, and some types of maps in later ones, know no batches. */
function hasNoBatches(result: number): boolean {
  return result === -ENOTSUPP || result === -EINVAL;
}

/** As `BpfMap.updateBatch`; lengths were checked. */
export function updateBatch(map: BatchMap, { keys, values, count }: Elements): void {
  const attribute = batchAttribute(map, count);
  const result = tryBpf('MAP_UPDATE_BATCH', { attempt: '', attribute, pointers: [16, keys, 24, values] });
  if (result === 0) return;
  if (!hasNoBatches(result)) throw batchError(map.shape.name, -result, { written: attribute.getU32(32), count });
  updateEach(map, { keys, values, count });
}

/** As `updateBatch`, for kernels and types of maps without batches. */
export function updateEach(map: BatchMap, { keys, values, count }: Elements): void {
  for (let index = 0; index < count; index++) {
    const value = values.subarray(index * map.transferredSize, (index + 1) * map.transferredSize);
    try {
      map.update(keys.subarray(index * map.shape.keySize, (index + 1) * map.shape.keySize), value);
    } catch (error) {
      if (!(error instanceof NativeError)) throw error;
      throw batchError(map.shape.name, error.errno, { written: index, count });
    }
  }
}

function batchAttribute(map: BatchMap, count: number): Attribute {
  return new Attribute(56).u32(32, count).u32(36, map.fd);
}

/** Attempts to dump a map that other processes write. */
const maxAttempts = 10;
/** Most maps that are read at once are small, and read often: they grow with what is found. */
const firstCapacity = 256;

/** As `BpfMap.entries`, by batches where the kernel has them. */
export function readEntries(map: BatchMap): BpfEntries {
  for (let attempt = 1; ; attempt++) {
    const result = readBatches(map, new Collected(map));
    if (typeof result === 'object') return result;
    if (hasNoBatches(result)) return walkEntries(map);
    if (result === -EINTR && attempt < maxAttempts) continue;
    throw bpfError('MAP_LOOKUP_BATCH', `cannot read the BPF map ${map.shape.name}`, -result);
  }
}

function readBatches(map: BatchMap, collected: Collected): BpfEntries | number {
  // Position of the next batch: the number of a bucket in hash tables, the last key in other maps.
  const here = new Uint8Array(Math.max(map.shape.keySize, 8));
  const next = new Uint8Array(here.length);
  for (let isFirst = true; ;) {
    const attribute = batchAttribute(map, collected.room);
    const from = isFirst ? [] : [0, here];
    const pointers = [...from, 8, next, 16, collected.freeKeys(), 24, collected.freeValues()];
    const result = tryBpf('MAP_LOOKUP_BATCH', { attempt: '', attribute, pointers });
    if (result === -ENOSPC) {
      collected.grow(); // a bucket has more than there is room for
      continue;
    }
    if (result !== 0 && result !== -ENOENT) return result;
    collected.add(attribute.getU32(32));
    if (result === -ENOENT) return collected.entries();
    here.set(next);
    isFirst = false;
    if (collected.room < firstCapacity / 4) collected.grow();
  }
}

const sliceLength = 1024;

/** As `BpfMap.slices`, by batches where the kernel has them, otherwise in one slice. */
export function* readSlices(map: BatchMap): Generator<BpfEntries, void, undefined> {
  let slice = new Collected(map, sliceLength);
  const here = new Uint8Array(Math.max(map.shape.keySize, 8));
  const next = new Uint8Array(here.length);
  for (let isFirst = true; ;) {
    const attribute = batchAttribute(map, slice.room);
    const pointers = [...(isFirst ? [] : [0, here]), 8, next, 16, slice.freeKeys(), 24, slice.freeValues()];
    const result = tryBpf('MAP_LOOKUP_BATCH', { attempt: '', attribute, pointers });
    if (result === -ENOSPC) {
      slice = new Collected(map, slice.room * 2); // a bucket has more than there is room for
      continue;
    }
    if (isFirst && hasNoBatches(result)) return yield walkEntries(map);
    if (result !== 0 && result !== -ENOENT) {
      throw bpfError('MAP_LOOKUP_BATCH', `cannot read the BPF map ${map.shape.name}`, -result);
    }
    yield slice.first(attribute.getU32(32));
    if (result === -ENOENT) return;
    here.set(next);
    isFirst = false;
  }
}

/** As `readEntries`, for kernels and types of maps without batches. */
export function walkEntries(map: BatchMap): BpfEntries {
  const collected = new Collected(map);
  let key: Uint8Array = new Uint8Array(new ArrayBuffer(map.shape.keySize));
  const next = new Uint8Array(new ArrayBuffer(map.shape.keySize));
  const attempt = `cannot walk through the BPF map ${map.shape.name}`;
  // When the last element was deleted in between, the kernel starts again with the first. The bound ends the walk.
  for (let step = 0; step <= 2 * map.shape.maxEntries; step++) {
    const attribute = new Attribute(32).u32(0, map.fd);
    const result = tryBpf('MAP_GET_NEXT_KEY', {
      attempt,
      attribute,
      pointers: [...(step === 0 ? [] : [8, key]), 16, next],
    });
    if (result === -ENOENT) break;
    if (result !== 0) throw bpfError('MAP_GET_NEXT_KEY', attempt, -result);
    key = next.slice();
    const value = map.lookup(key);
    if (value !== undefined) collected.push(key, value);
  }
  return collected.entries();
}

/** Elements as they come, in arrays that grow. */
class Collected {
  readonly #keySize: number;
  readonly #valueSize: number;
  #capacity: number;
  #count = 0;
  #keys: Uint8Array;
  #values: Uint8Array;

  constructor({ shape, transferredSize }: BatchMap, capacity: number = firstCapacity) {
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

  push(key: Uint8Array, value: Uint8Array): void {
    if (this.room === 0) this.grow();
    this.freeKeys().set(key);
    this.freeValues().set(value);
    this.add(1);
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
