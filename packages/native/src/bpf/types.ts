/** The map types that are used here, by their number in `enum bpf_map_type`. */
export const bpfMapTypes = {
  hash: 1,
  array: 2,
  perCpuArray: 6,
  lruHash: 9,
  lpmTrie: 11,
} as const;

/** A kind of BPF map. */
export type BpfMapType = keyof typeof bpfMapTypes;

/** Shape of a map. Two maps with the same shape can replace each other. */
export interface BpfMapShape {
  /** At most 15 bytes. */
  readonly name: string;
  readonly type: BpfMapType;
  /** Bytes. */
  readonly keySize: number;
  /** Bytes, as declared; arrays keep values at multiples of 8. */
  readonly valueSize: number;
  readonly maxEntries: number;
  /** Values of an array are memory that can be mapped (Linux 5.5). */
  readonly mmapable?: boolean;
  /** Elements are allocated when they come (hash tables; LPM tries are always so). */
  readonly noPrealloc?: boolean;
}

/** All elements of a map, one after the other, in no order. */
export interface BpfEntries {
  readonly count: number;
  /** `count` keys of `keySize` bytes. */
  readonly keys: Uint8Array;
  /** `count` values: `valueSize` bytes each, of a per-CPU map `valueSize` rounded up to 8, times the possible CPUs. */
  readonly values: Uint8Array;
}

/** An open BPF map. Calls are synchronous. Wrong lengths throw `UsageError`, refusals `NativeError`: `E2BIG` or `ENOSPC` when it is full. */
export interface BpfMap extends Disposable {
  readonly shape: BpfMapShape;
  /** The kernel's id; unique on this machine until it starts again. */
  readonly id: number;
  /** A new array with the value, or undefined. Of a per-CPU map: the values of all possible CPUs. */
  lookup(key: Uint8Array): Uint8Array | undefined;
  update(key: Uint8Array, value: Uint8Array): void;
  /** Whether it was there. */
  delete(key: Uint8Array): boolean;
  /** `count` elements, keys and values one after the other. Stops at the first refusal; the error says how many were written. */
  updateBatch(keys: Uint8Array, values: Uint8Array, count: number): void;
  /** All elements. When another process writes in between, an element may be missed or repeated, never torn below 8 bytes. */
  entries(): BpfEntries;
  /** As `entries`, in parts, in arrays that the next step uses again. What is written between two steps may be missed or repeated. */
  slices(): Generator<BpfEntries, void, undefined>;
  /**
   * The values of an mmapable array, value `i` at `i * valueSize` rounded up to 8. Written bytes are seen by programs at once;
   * write eight bytes with `Atomics.store` on a `BigUint64Array` over `buffer` where they must be seen as one. The same memory at
   * each call. Throws `UsageError` for other maps.
   */
  values(): Uint8Array;
}

/** A program that the kernel verified. */
export interface BpfProgram extends Disposable {
  readonly name: string;
  readonly id: number;
  /** Digest of its instructions as the kernel computes it, 16 hexadecimal digits. */
  readonly tag: string;
  /** Ids of the maps it uses, also of those that hold its constants. */
  readonly mapIds: readonly number[];
}

/** Where a program of type `cgroup_sock_addr` hooks in. */
export type CgroupHook =
  | 'connect4'
  | 'connect6'
  | 'sendmsg4'
  | 'sendmsg6'
  | 'recvmsg4'
  | 'recvmsg6'
  | 'getpeername4'
  | 'getpeername6';

/** A program that is attached. It stays attached while this or a pin of it is open. */
export interface BpfLink extends Disposable {
  readonly id: number;
  readonly programId: number;
  /** Replaces the program atomically: every packet meets the old or the new one. */
  update(program: BpfProgram): void;
  /** Detaches now, although it may be pinned. */
  detach(): void;
}

/** Options of loading an object file. */
export interface BpfLoadOptions {
  /** Maps that exist, by name; they are used instead of new ones. */
  readonly maps?: ReadonlyMap<string, BpfMap>;
  /** Values of `const volatile` globals, by their names in the object's BTF; numbers in the machine's byte order. */
  readonly constants?: Readonly<Record<string, number | bigint>>;
  /** Programs to leave out. */
  readonly skip?: readonly string[];
}

/** A loaded object. Disposing it closes its own maps and programs; pinned and linked ones stay. */
export interface BpfObject extends Disposable {
  readonly maps: ReadonlyMap<string, BpfMap>;
  readonly programs: ReadonlyMap<string, BpfProgram>;
}
