import { constants } from 'node:os';
import { UsageError } from '@switchyard/core';
import { bpfError, type CommandName } from '../bpf/call.ts';
import { batchError } from '../bpf/map-batches.ts';
import { checkLength, checkMmapable, roundUp8, transferredSize } from '../bpf/kernel-map.ts';
import type { BpfEntries, BpfMap, BpfMapShape } from '../bpf/types.ts';
import { NativeError } from '../native-error.ts';
import { ArrayElements, type Elements, HashElements, LpmElements } from './memory-elements.ts';

const { ENOENT } = constants.errno;
let nextId = 1;
/** How many parts `slices` has, if there are enough elements. */
const partsOfMap = 8;

/** How a map in memory is made. */
export interface MemoryBpfMapOptions {
  /** CPUs that per-CPU maps have values for; default 2. */
  readonly cpus?: number;
}

/**
 * A BPF map in memory, with the kernel's answers byte by byte: capacity, what LRU maps forget, the longest match of LPM
 * tries, values of all CPUs, and arrays whose values are memory. Beside tests with the real one, for machines that may not use it.
 */
export class MemoryBpfMap implements BpfMap {
  readonly shape: BpfMapShape;
  readonly id: number;
  readonly #elements: Elements;
  readonly #valueSize: number;
  #isOpen = true;

  constructor(shape: BpfMapShape, { cpus = 2 }: MemoryBpfMapOptions = {}) {
    this.shape = shape;
    this.id = nextId++;
    this.#valueSize = transferredSize(shape, cpus);
    this.#elements = elementsOf(shape, this.#valueSize);
  }

  lookup(key: Uint8Array): Uint8Array | undefined {
    this.#checkKey(key);
    return this.#elements.lookup(key)?.slice();
  }

  update(key: Uint8Array, value: Uint8Array): void {
    this.#checkKey(key);
    checkLength(this.shape.name, 'value', { has: value.length, needs: this.#valueSize });
    const errno = this.#elements.update(key, value);
    if (errno !== 0) throw this.#refusal('MAP_UPDATE_ELEM', 'write', errno);
  }

  delete(key: Uint8Array): boolean {
    this.#checkKey(key);
    const errno = this.#elements.delete(key);
    if (errno === 0 || errno === ENOENT) return errno === 0;
    throw this.#refusal('MAP_DELETE_ELEM', 'delete', errno);
  }

  updateBatch(keys: Uint8Array, values: Uint8Array, count: number): void {
    this.#checkOpen();
    checkLength(this.shape.name, 'keys', { has: keys.length, needs: count * this.shape.keySize });
    checkLength(this.shape.name, 'values', { has: values.length, needs: count * this.#valueSize });
    for (let index = 0; index < count; index++) {
      try {
        this.update(this.#keyAt(keys, index), values.subarray(index * this.#valueSize, (index + 1) * this.#valueSize));
      } catch (error) {
        if (!(error instanceof NativeError)) throw error;
        throw batchError(this.shape.name, error.errno, { written: index, count });
      }
    }
  }

  entries(): BpfEntries {
    this.#checkOpen();
    return this.#entriesOf(this.#elements.all());
  }

  /** In several parts, so that tests meet more than one; each is as the map is by then. */
  *slices(): Generator<BpfEntries, void, undefined> {
    const first = this.entries();
    const length = Math.ceil(first.count / partsOfMap);
    for (let from = 0; from < first.count; from += length) {
      const end = Math.min(first.count, from + length);
      const keys = new Set(
        Array.from({ length: end - from }, (_, index) => hexOf(this.#keyAt(first.keys, from + index))),
      );
      this.#checkOpen();
      yield this.#entriesOf(this.#elements.all().filter(([key]) => keys.has(hexOf(key))));
    }
  }

  values(): Uint8Array {
    this.#checkOpen();
    checkMmapable(this.shape);
    return (this.#elements as ArrayElements).memory; // mmapable maps are arrays
  }

  [Symbol.dispose](): void {
    this.#isOpen = false;
  }

  #entriesOf(all: readonly (readonly [key: Uint8Array, value: Uint8Array])[]): BpfEntries {
    const keys = new Uint8Array(all.length * this.shape.keySize);
    const values = new Uint8Array(all.length * this.#valueSize);
    for (const [index, [key, value]] of all.entries()) {
      keys.set(key, index * this.shape.keySize);
      values.set(value, index * this.#valueSize);
    }
    return { count: all.length, keys, values };
  }

  #keyAt(keys: Uint8Array, index: number): Uint8Array {
    return keys.subarray(index * this.shape.keySize, (index + 1) * this.shape.keySize);
  }

  #checkOpen(): void {
    if (this.#isOpen) return;
    throw new UsageError('bpf.closed', `the BPF map ${this.shape.name} was closed before`);
  }

  #checkKey(key: Uint8Array): void {
    this.#checkOpen();
    checkLength(this.shape.name, 'key', { has: key.length, needs: this.shape.keySize });
  }

  #refusal(command: CommandName, verb: string, errno: number): NativeError {
    return bpfError(command, `cannot ${verb} an element of the BPF map ${this.shape.name}`, errno);
  }
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function elementsOf(shape: BpfMapShape, valueSize: number): Elements {
  switch (shape.type) {
    case 'array':
      return new ArrayElements(shape.maxEntries, valueSize, roundUp8(valueSize));
    case 'perCpuArray':
      return new ArrayElements(shape.maxEntries, valueSize, valueSize);
    case 'hash':
      return new HashElements(shape.maxEntries, 'refuses');
    case 'lruHash':
      return new HashElements(shape.maxEntries, 'forgets');
    case 'lpmTrie':
      return new LpmElements(shape.maxEntries);
  }
}
