import { readFileSync } from 'node:fs';
import type { Random } from '@switchyard/core';
import { seededRandom } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { type BpfMap, type BpfMapShape, createMap, possibleCpus } from '../../src/index.ts';
import { MemoryBpfMap } from '../../src/testing/index.ts';
import { clearMap, contentOf, key32, mapCases, thrownBy } from '../../src/testing/map-cases.ts';

test.each(mapCases)('in the kernel, $title', ({ shape, act, expected }) => {
  using map = createMap(shape);
  expect(map.shape).toEqual(shape);
  expect(act(map, possibleCpus())).toEqual(expected);
});

const memory = {
  name: 'swy_memory',
  type: 'array',
  keySize: 4,
  valueSize: 8,
  maxEntries: 1000,
  mmapable: true,
} as const;

/** How often this process has memory of BPF maps. */
function mappedCount(): number {
  return readFileSync('/proc/self/maps', 'utf8').split('bpf-map').length - 1;
}

test('memory of a closed map is given back, and views of it have no bytes', async () => {
  const nextTurn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve));
  await nextTurn(); // of maps before
  const before = mappedCount();
  const map = createMap(memory);
  const values = map.values();
  const words = new BigUint64Array(values.buffer);
  Atomics.store(words, 3, 7n);
  expect([mappedCount(), values.length]).toEqual([before + 1, 8000]);
  map[Symbol.dispose]();
  expect([values.length, words.length]).toEqual([0, 0]);
  await nextTurn();
  expect(mappedCount()).toBe(before);
});

test.each(['hash', 'lruHash', 'lpmTrie', 'array', 'perCpuArray'] as const)(
  'a dump of a large %s has everything in it',
  (type) => {
    const count = 20_000;
    const noPrealloc = type === 'hash' || type === 'lpmTrie';
    using map = createMap({
      name: 'swy_large',
      type,
      keySize: type === 'lpmTrie' ? 8 : 4,
      valueSize: 8,
      maxEntries: type === 'lruHash' ? 4 * count : count,
      ...(noPrealloc ? { noPrealloc } : {}),
    });
    const valueSize = type === 'perCpuArray' ? 8 * possibleCpus() : 8;
    const keys = new Uint32Array((count * map.shape.keySize) / 4);
    const values = new Float64Array((count * valueSize) / 8);
    for (let index = 0; index < count; index++) {
      if (type === 'lpmTrie') keys.set([32, index], 2 * index);
      else keys[index] = index;
      values[(index * valueSize) / 8] = index + 1;
    }
    map.updateBatch(new Uint8Array(keys.buffer), new Uint8Array(values.buffer), count);
    const dump = map.entries();
    const read = new Float64Array(dump.values.slice().buffer);
    const sum = read.reduce((total, value) => total + value, 0);
    expect([dump.count, sum]).toEqual([count, (count * (count + 1)) / 2]);
    if (type === 'array' || type === 'perCpuArray') return;
    clearMap(map);
    expect(map.entries().count).toBe(0);
  },
);

/** Types that both sides do exactly the same with. */
const comparable: readonly BpfMapShape[] = [
  { name: 'swy_hash', type: 'hash', keySize: 4, valueSize: 4, maxEntries: 12, noPrealloc: true },
  { name: 'swy_array', type: 'array', keySize: 4, valueSize: 4, maxEntries: 12 },
  { name: 'swy_trie', type: 'lpmTrie', keySize: 8, valueSize: 4, maxEntries: 12, noPrealloc: true },
];

test.each(comparable)('3,000 random calls on a $type have the same outcome in memory', (shape) => {
  using real = createMap(shape);
  using fake = new MemoryBpfMap(shape, { cpus: possibleCpus() });
  const random = seededRandom(`maps of type ${shape.type}`);
  for (let step = 0; step < 3000; step++) {
    const key = randomKey(shape, random);
    const value = Uint8Array.of(step, step >> 8, 0, 0);
    const kind = pick(random, 4);
    const act = (map: BpfMap): unknown => {
      if (kind === 0) return map.lookup(key)?.join(' ');
      if (kind === 1) return outcomeOf(() => map.delete(key));
      if (kind === 2) return thrownBy(() => map.update(key, value));
      return contentOf(map);
    };
    expect([step, act(fake)]).toEqual([step, act(real)]);
  }
});

function outcomeOf(act: () => unknown): unknown {
  let result: unknown;
  const thrown = thrownBy(() => (result = act()));
  return thrown === 'nothing' ? result : thrown;
}

function pick(random: Random, count: number): number {
  return Math.floor(random() * count);
}

/** Few enough that keys come again. */
function randomKey({ type }: BpfMapShape, random: Random): Uint8Array {
  if (type !== 'lpmTrie') return key32(pick(random, 16));
  const key = new Uint8Array(8);
  key.set([pick(random, 34), 0, 0, 0, 10, pick(random, 4), pick(random, 2) * 128, 0]);
  return key;
}
