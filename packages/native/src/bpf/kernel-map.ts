import { closeSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { UsageError } from '@switchyard/core';
import { NativeError } from '../native-error.ts';
import { type BpfAddon, loadBpfAddon } from './bpf-addon.ts';
import { bpfError, commands } from './call.ts';
import { readEntries, readSlices, updateBatch } from './map-batches.ts';
import type { BpfEntries, BpfMap, BpfMapShape } from './types.ts';

const { ENOENT } = constants.errno;

/** Where the fields of an element's attribute are. */
const offsets = { fd: 0, key: 8, value: 16, length: 32 } as const;

/** Calls on one element allocate only their result. */
export class KernelMap implements BpfMap {
  readonly shape: BpfMapShape;
  readonly id: number;
  readonly #addon: BpfAddon;
  readonly #attribute: Uint8Array;
  /** Without the value: a deletion has none, and the kernel refuses bytes behind the key. */
  readonly #keyAttribute: Uint8Array;
  readonly #words: Uint32Array;
  readonly #key: Uint8Array;
  readonly #value: Uint8Array;
  #fd: number | undefined;
  #memory: Uint8Array<ArrayBuffer> | undefined;

  constructor(fd: number, id: number, shape: BpfMapShape) {
    this.shape = shape;
    this.id = id;
    this.#fd = fd;
    this.#addon = loadBpfAddon();
    const valueSize = transferredSize(shape, shape.type === 'perCpuArray' ? possibleCpus() : 1);
    const memory = new ArrayBuffer(offsets.length + roundUp8(shape.keySize) + valueSize);
    this.#attribute = new Uint8Array(memory, 0, offsets.length);
    this.#keyAttribute = new Uint8Array(memory, 0, offsets.value);
    this.#words = new Uint32Array(memory, 0, offsets.length / 4);
    this.#key = new Uint8Array(memory, offsets.length, shape.keySize);
    this.#value = new Uint8Array(memory, offsets.length + roundUp8(shape.keySize), valueSize);
    this.#addon.point(this.#attribute, offsets.key, this.#key, offsets.value, this.#value);
    this.#words[offsets.fd / 4] = fd;
  }

  /** The descriptor. Throws `UsageError` after dispose. */
  get fd(): number {
    if (this.#fd !== undefined) return this.#fd;
    throw new UsageError('bpf.closed', `the BPF map ${this.shape.name} was closed before`);
  }

  lookup(key: Uint8Array): Uint8Array | undefined {
    const result = this.#call(commands.MAP_LOOKUP_ELEM, key);
    if (result === 0) return this.#value.slice();
    if (result === -ENOENT) return undefined;
    throw bpfError('MAP_LOOKUP_ELEM', `cannot read an element of the BPF map ${this.shape.name}`, -result);
  }

  update(key: Uint8Array, value: Uint8Array): void {
    if (value.length !== this.#value.length) {
      checkLength(this.shape.name, 'value', { has: value.length, needs: this.#value.length });
    }
    this.#value.set(value);
    const result = this.#call(commands.MAP_UPDATE_ELEM, key);
    if (result === 0) return;
    throw bpfError('MAP_UPDATE_ELEM', `cannot write an element of the BPF map ${this.shape.name}`, -result);
  }

  delete(key: Uint8Array): boolean {
    const result = this.#call(commands.MAP_DELETE_ELEM, key, this.#keyAttribute);
    if (result === 0) return true;
    if (result === -ENOENT) return false;
    throw bpfError('MAP_DELETE_ELEM', `cannot delete an element of the BPF map ${this.shape.name}`, -result);
  }

  updateBatch(keys: Uint8Array, values: Uint8Array, count: number): void {
    const { name, keySize } = this.shape;
    checkLength(name, 'keys', { has: keys.length, needs: count * keySize });
    checkLength(name, 'values', { has: values.length, needs: count * this.#value.length });
    if (count > 0) updateBatch(this, { keys, values, count });
  }

  entries(): BpfEntries {
    return this.shape.mmapable === true && isArray(this.shape) ? this.#arrayEntries() : readEntries(this);
  }

  *slices(): Generator<BpfEntries, void, undefined> {
    if (isArray(this.shape)) yield this.entries();
    else yield* readSlices(this);
  }

  values(): Uint8Array {
    checkMmapable(this.shape);
    if (this.#memory !== undefined) return this.#memory;
    const { name, valueSize, maxEntries } = this.shape;
    const memory = this.#addon.mapMemory(this.fd, roundUp8(valueSize) * maxEntries);
    if (typeof memory === 'number') {
      throw new NativeError(`cannot map the memory of the BPF map ${name}`, { errno: -memory, syscall: 'mmap' });
    }
    this.#memory = new Uint8Array(memory);
    return this.#memory;
  }

  [Symbol.dispose](): void {
    if (this.#fd === undefined) return;
    if (this.#memory !== undefined) this.#addon.unmapMemory(this.#memory.buffer); // all views have no bytes from now on
    this.#memory = undefined;
    closeSync(this.#fd);
    this.#fd = undefined;
  }

  /** Bytes of a value as the kernel takes and gives it. */
  get transferredSize(): number {
    return this.#value.length;
  }

  #call(command: number, key: Uint8Array, attribute: Uint8Array = this.#attribute): number {
    if (this.#fd === undefined) return this.fd; // throws
    if (key.length !== this.#key.length) {
      checkLength(this.shape.name, 'key', { has: key.length, needs: this.#key.length });
    }
    this.#key.set(key);
    return this.#addon.bpf(command, attribute);
  }

  /** Without a system call. */
  #arrayEntries(): BpfEntries {
    const { maxEntries: count, valueSize } = this.shape;
    const stride = roundUp8(valueSize);
    const memory = this.values();
    if (stride === valueSize) return { count, keys: indexKeys(count), values: memory.slice() };
    const values = new Uint8Array(count * valueSize);
    for (let index = 0; index < count; index++) {
      values.set(memory.subarray(index * stride, index * stride + valueSize), index * valueSize);
    }
    return { count, keys: indexKeys(count), values };
  }
}

/** Keys of all elements of an array, in order. */
export function indexKeys(count: number): Uint8Array {
  return new Uint8Array(Uint32Array.from({ length: count }, (_, index) => index).buffer);
}

/** A length rounded up to eight bytes: how arrays keep their values, and per-CPU maps those of one CPU. */
export function roundUp8(length: number): number {
  return (length + 7) & ~7;
}

/** Whether elements are found by their index and are always there. */
function isArray({ type }: BpfMapShape): boolean {
  return type === 'array' || type === 'perCpuArray';
}

/** Bytes of a value in a system call, with `cpus` CPUs. */
export function transferredSize({ type, valueSize }: BpfMapShape, cpus: number): number {
  return type === 'perCpuArray' ? roundUp8(valueSize) * cpus : valueSize;
}

/** Throws `UsageError` where a caller's bytes are not of the length that the map has. */
export function checkLength(
  name: string,
  what: 'key' | 'value' | 'keys' | 'values',
  sizes: { readonly has: number; readonly needs: number },
): void {
  if (sizes.has === sizes.needs) return;
  throw new UsageError('bpf.length', `the BPF map ${name} takes ${sizes.needs} bytes as ${what}, not ${sizes.has}`);
}

/** Throws `UsageError` for a map whose values are not memory. */
export function checkMmapable(shape: BpfMapShape): void {
  if (shape.mmapable === true && shape.type === 'array') return;
  throw new UsageError('bpf.mmap', `the BPF map ${shape.name} is no mmapable array: its values are not memory`);
}

let counted: number | undefined;

/** Number of CPUs that this machine may ever have. An element of a per-CPU map has a value for each. */
export function possibleCpus(): number {
  counted ??= countCpus(readFileSync('/sys/devices/system/cpu/possible', 'utf8'));
  return counted;
}

/** The size of a set of CPUs written as `0-3,8`, from zero to the highest: the kernel leaves room for those between. */
export function countCpus(set: string): number {
  return Math.max(...set.trim().split(/[,-]/).map(Number)) + 1;
}
