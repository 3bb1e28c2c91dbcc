import { messageOf } from '@switchyard/core';
import type { BpfEntries, BpfMap, BpfMapShape } from '../bpf/types.ts';
import { NativeError } from '../native-error.ts';

/** Something done to an empty map, and what must come out, whether the map is the kernel's or one in memory. */
export interface MapCase {
  /** Reads as a sentence. */
  readonly title: string;
  readonly shape: BpfMapShape;
  /** Returns what is compared. `cpus` is how many values an element of a per-CPU map has. */
  readonly act: (map: BpfMap, cpus: number) => unknown;
  readonly expected: unknown;
}

const shapes = {
  hash: { name: 'swy_hash', type: 'hash', keySize: 4, valueSize: 8, maxEntries: 4, noPrealloc: true },
  array: { name: 'swy_array', type: 'array', keySize: 4, valueSize: 6, maxEntries: 4 },
  memory: { name: 'swy_memory', type: 'array', keySize: 4, valueSize: 8, maxEntries: 4, mmapable: true },
  uneven: { name: 'swy_uneven', type: 'array', keySize: 4, valueSize: 5, maxEntries: 3, mmapable: true },
  large: { name: 'swy_large', type: 'hash', keySize: 4, valueSize: 8, maxEntries: 5000, noPrealloc: true },
  largeTrie: { name: 'swy_large_trie', type: 'lpmTrie', keySize: 8, valueSize: 1, maxEntries: 3000, noPrealloc: true },
  perCpu: { name: 'swy_percpu', type: 'perCpuArray', keySize: 4, valueSize: 4, maxEntries: 2 },
  lru: { name: 'swy_lru', type: 'lruHash', keySize: 4, valueSize: 8, maxEntries: 128 },
  trie: { name: 'swy_trie', type: 'lpmTrie', keySize: 8, valueSize: 1, maxEntries: 4, noPrealloc: true },
} as const satisfies Record<string, BpfMapShape>;

/** Four bytes of a number, little-endian: keys of the cases. */
export function key32(value: number): Uint8Array {
  return Uint8Array.of(value & 0xff, (value >> 8) & 0xff, (value >> 16) & 0xff, (value >> 24) & 0xff);
}

function value8(value: number): Uint8Array {
  return Uint8Array.of(value, 0, 0, 0, 0, 0, 0, 0xfe);
}

/** The name of the errno, or the message, that it throws; `nothing` when it does not. */
export function thrownBy(act: () => unknown): string {
  try {
    act();
    return 'nothing';
  } catch (error) {
    return error instanceof NativeError ? error.errnoName : messageOf(error);
  }
}

/** Deletes all elements. */
export function clearMap(map: BpfMap): void {
  const { count, keys } = map.entries();
  for (let index = 0; index < count; index++) {
    map.delete(keys.subarray(index * map.shape.keySize, (index + 1) * map.shape.keySize));
  }
}

/** All elements as texts, sorted. */
export function contentOf(map: BpfMap): readonly string[] {
  return textsOf(map, map.entries()).toSorted();
}

/** Whether the slices hold what the map holds, and how much that is. */
function slicesOf(map: BpfMap): readonly [isAll: boolean, count: number] {
  const texts = map
    .slices()
    .flatMap((slice) => textsOf(map, slice))
    .toArray()
    .toSorted();
  return [texts.join() === contentOf(map).join(), texts.length];
}

function textsOf(map: BpfMap, { count, keys, values }: BpfEntries): readonly string[] {
  const valueSize = count === 0 ? 0 : values.length / count;
  return Array.from({ length: count }, (_, index) => {
    const key = keys.subarray(index * map.shape.keySize, (index + 1) * map.shape.keySize);
    return `${hex(key)}=${hex(values.subarray(index * valueSize, (index + 1) * valueSize))}`;
  });
}

function hex(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? 'nothing' : Buffer.from(bytes).toString('hex');
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

/** A prefix of an IPv4 address. */
function prefix(bits: number, ...address: readonly number[]): Uint8Array {
  return joined([key32(bits), Uint8Array.from(address)]);
}

/** The rows of the test of maps. */
export const mapCases: readonly MapCase[] = [
  {
    title: 'a hash table gives back what was written, and nothing for other keys',
    shape: shapes.hash,
    act: (map) => {
      map.update(key32(7), value8(1));
      map.update(key32(7), value8(2));
      return [
        hex(map.lookup(key32(7))),
        map.lookup(key32(8)),
        map.delete(key32(7)),
        map.delete(key32(7)),
        contentOf(map),
      ];
    },
    expected: ['02000000000000fe', undefined, true, false, []],
  },
  {
    title: 'what was read is a copy',
    shape: shapes.hash,
    act: (map) => {
      const value = value8(1);
      map.update(key32(1), value);
      value[0] = 9;
      map.lookup(key32(1))?.fill(9);
      return contentOf(map);
    },
    expected: ['01000000=01000000000000fe'],
  },
  {
    title: 'a hash table that is full takes no more, but overwrites',
    shape: shapes.hash,
    act: (map) => {
      for (let index = 0; index < 4; index++) map.update(key32(index), value8(index));
      return [
        thrownBy(() => map.update(key32(4), value8(4))),
        thrownBy(() => map.update(key32(3), value8(9))),
        contentOf(map),
      ];
    },
    expected: [
      'E2BIG',
      'nothing',
      [
        '00000000=00000000000000fe',
        '01000000=01000000000000fe',
        '02000000=02000000000000fe',
        '03000000=09000000000000fe',
      ],
    ],
  },
  {
    title: 'a batch is written whole',
    shape: shapes.hash,
    act: (map) => {
      map.updateBatch(joined([1, 2, 3].map(key32)), joined([1, 2, 3].map(value8)), 3);
      return contentOf(map);
    },
    expected: ['01000000=01000000000000fe', '02000000=02000000000000fe', '03000000=03000000000000fe'],
  },
  {
    title: 'a batch that does not fit says how much of it is written',
    shape: shapes.hash,
    act: (map) => {
      const all = [1, 2, 3, 4, 5, 6];
      try {
        map.updateBatch(joined(all.map(key32)), joined(all.map(value8)), 6);
        return 'nothing';
      } catch (error) {
        return [messageOf(error), contentOf(map).length];
      }
    },
    expected: ['cannot write 6 elements into the BPF map swy_hash, only 4: bpf MAP_UPDATE_BATCH failed with E2BIG', 4],
  },
  {
    title: 'a batch of nothing is nothing',
    shape: shapes.hash,
    act: (map) => thrownBy(() => map.updateBatch(new Uint8Array(0), new Uint8Array(0), 0)),
    expected: 'nothing',
  },
  {
    title: 'wrong lengths are refused before the kernel sees them',
    shape: shapes.hash,
    act: (map) => [
      thrownBy(() => map.lookup(new Uint8Array(3))),
      thrownBy(() => map.update(key32(1), new Uint8Array(9))),
      thrownBy(() => map.delete(new Uint8Array(5))),
      thrownBy(() => map.updateBatch(new Uint8Array(8), new Uint8Array(8), 2)),
      thrownBy(() => map.updateBatch(new Uint8Array(8), new Uint8Array(8), 1)),
      thrownBy(() => map.values()),
    ],
    expected: [
      'the BPF map swy_hash takes 4 bytes as key, not 3',
      'the BPF map swy_hash takes 8 bytes as value, not 9',
      'the BPF map swy_hash takes 4 bytes as key, not 5',
      'the BPF map swy_hash takes 16 bytes as values, not 8',
      'the BPF map swy_hash takes 4 bytes as keys, not 8',
      'the BPF map swy_hash is no mmapable array: its values are not memory',
    ],
  },
  {
    title: 'a closed map takes no calls, and closing twice does nothing',
    shape: shapes.memory,
    act: (map) => {
      map.values();
      map[Symbol.dispose]();
      map[Symbol.dispose]();
      return [thrownBy(() => map.lookup(key32(0))), thrownBy(() => map.values()), thrownBy(() => map.entries())];
    },
    expected: Array.from({ length: 3 }, () => 'the BPF map swy_memory was closed before'),
  },
  {
    title: 'elements of an array are always there, and zero',
    shape: shapes.array,
    act: (map) => {
      map.update(key32(2), Uint8Array.of(1, 2, 3, 4, 5, 6));
      return [contentOf(map), map.lookup(key32(4))];
    },
    expected: [
      ['00000000=000000000000', '01000000=000000000000', '02000000=010203040506', '03000000=000000000000'],
      undefined,
    ],
  },
  {
    title: 'an array takes no index beyond its end and deletes no element',
    shape: shapes.array,
    act: (map) => [
      thrownBy(() => map.update(key32(4), new Uint8Array(6))),
      thrownBy(() => map.update(key32(0), new Uint8Array(6))),
      thrownBy(() => map.delete(key32(0))),
    ],
    expected: ['E2BIG', 'nothing', 'EINVAL'],
  },
  {
    title: 'a batch on an array stops at an index beyond its end',
    shape: shapes.array,
    act: (map) => [
      thrownBy(() => map.updateBatch(joined([1, 9, 2].map(key32)), new Uint8Array(18).fill(7), 3)),
      contentOf(map)[1],
      contentOf(map)[2],
    ],
    expected: ['E2BIG', '01000000=070707070707', '02000000=000000000000'],
  },
  {
    title: 'values of an mmapable array are memory, and the same at each call',
    shape: shapes.memory,
    act: (map) => {
      const values = map.values();
      new BigUint64Array(values.buffer)[2] = 5n;
      map.update(key32(1), value8(3));
      return [
        values.length,
        values[16],
        hex(map.lookup(key32(2))),
        values[8],
        map.values() === values,
        contentOf(map)[1],
      ];
    },
    expected: [32, 5, '0500000000000000', 3, true, '01000000=03000000000000fe'],
  },
  {
    title: 'values of an mmapable array lie at multiples of eight bytes',
    shape: shapes.uneven,
    act: (map) => {
      map.update(key32(1), Uint8Array.of(1, 2, 3, 4, 5));
      return [map.values().length, hex(map.values().subarray(8, 13)), contentOf(map)];
    },
    expected: [24, '0102030405', ['00000000=0000000000', '01000000=0102030405', '02000000=0000000000']],
  },
  {
    title: 'a per-CPU array has values of all CPUs',
    shape: shapes.perCpu,
    act: (map, cpus) => {
      map.update(
        key32(1),
        new Uint8Array(8 * cpus).map((_, index) => (index % 8 < 4 ? 1 + Math.floor(index / 8) : 0)),
      );
      const value = map.lookup(key32(1)) ?? new Uint8Array(0);
      const { values } = map.entries();
      return [
        value.length / cpus,
        hex(value.subarray(0, 8)),
        value[8 * (cpus - 1)] === cpus,
        values.length / cpus,
        values[8 * cpus],
      ];
    },
    expected: [8, '0101010100000000', true, 16, 1],
  },
  {
    title: 'the slices of a hash table are all its elements',
    shape: shapes.large,
    act: (map) => {
      for (let index = 0; index < 4000; index++) map.update(key32(index), value8(index & 0xff));
      return slicesOf(map);
    },
    expected: [true, 4000],
  },
  {
    title: 'the slices of a trie are all its elements',
    shape: shapes.largeTrie,
    act: (map) => {
      for (let index = 0; index < 2500; index++)
        map.update(prefix(32, 10, 0, index >> 8, index & 0xff), Uint8Array.of(7));
      return slicesOf(map);
    },
    expected: [true, 2500],
  },
  { title: 'an empty table has no elements in its slices', shape: shapes.hash, act: slicesOf, expected: [true, 0] },
  {
    title: 'an LRU table forgets instead of refusing',
    shape: shapes.lru,
    act: (map) => {
      for (let index = 0; index < 1000; index++) map.update(key32(index), value8(index & 0xff));
      const { count } = map.entries();
      return [count > 0 && count <= 128, hex(map.lookup(key32(999))), map.lookup(key32(0)), map.delete(key32(999))];
    },
    expected: [true, 'e7000000000000fe', undefined, true],
  },
  {
    title: 'a trie finds the longest prefix that holds the key',
    shape: shapes.trie,
    act: (map) => {
      map.update(prefix(0, 0, 0, 0, 0), Uint8Array.of(1));
      map.update(prefix(8, 10, 0, 0, 0), Uint8Array.of(2));
      map.update(prefix(20, 10, 1, 16, 0), Uint8Array.of(3));
      const found = (...address: readonly number[]): number | undefined => map.lookup(prefix(32, ...address))?.[0];
      return [found(10, 1, 31, 1), found(10, 1, 32, 1), found(11, 0, 0, 0), map.lookup(prefix(16, 10, 1, 16, 0))?.[0]];
    },
    expected: [3, 2, 1, 2],
  },
  {
    title: 'a trie without a prefix for everything finds nothing',
    shape: shapes.trie,
    act: (map) => {
      map.update(prefix(8, 10, 0, 0, 0), Uint8Array.of(2));
      return map.lookup(prefix(32, 11, 0, 0, 0));
    },
    expected: undefined,
  },
  {
    title: 'a trie deletes exactly the prefix, and takes no more than fits',
    shape: shapes.trie,
    act: (map) => {
      for (const bits of [8, 9, 10, 11]) map.update(prefix(bits, 10, 0, 0, 0), Uint8Array.of(bits));
      return [
        thrownBy(() => map.update(prefix(12, 10, 0, 0, 0), Uint8Array.of(12))),
        thrownBy(() => map.update(prefix(11, 10, 0, 0, 0), Uint8Array.of(99))),
        thrownBy(() => map.update(prefix(33, 10, 0, 0, 0), Uint8Array.of(33))),
        map.delete(prefix(32, 10, 0, 0, 0)),
        [prefix(32, 9, 0, 0, 0), prefix(9, 10, 0, 0, 0), prefix(9, 10, 128, 0, 0)].map((key) => map.delete(key)),
        contentOf(map),
      ];
    },
    expected: [
      'ENOSPC',
      'nothing',
      'EINVAL',
      false,
      [false, true, false],
      ['080000000a000000=08', '0a0000000a000000=0a', '0b0000000a000000=63'],
    ],
  },
];
