import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { SortedMap } from './sorted-map.ts';

interface Item {
  readonly key: string;
  readonly value: number;
}

const keyOf = (item: Item): string => item.key;
const numbered = (count: number): readonly Item[] =>
  Array.from({ length: count }, (_, index) => ({ key: `k${String(index).padStart(5, '0')}`, value: index }));

/** Few keys, so that edits meet; enough of them, so that chunks are cut. */
const key = fc.integer({ min: 0, max: 600 }).map((number) => `k${number}`);
const edits = fc.array(
  fc.record({
    upserts: fc.array(fc.record({ key, value: fc.integer({ min: 0, max: 3 }) }), { maxLength: 400 }),
    removals: fc.array(key, { maxLength: 200 }),
  }),
  { maxLength: 6 },
);

test('behaves as a Map that is sorted by key, and old versions stay as they were', () => {
  fc.assert(
    fc.property(edits, (rounds) => {
      let map = SortedMap.empty(keyOf);
      let model = new Map<string, Item>();
      for (const { upserts, removals } of rounds) {
        const before = map;
        const old = model;
        model = new Map(old);
        for (const removal of removals) model.delete(removal);
        for (const item of upserts) model.set(item.key, item);
        map = map.with(upserts, removals);
        const sorted = [...model].sort(([a], [b]) => (a < b ? -1 : 1));
        expect([...map]).toEqual(sorted);
        expect(map.size).toBe(model.size);
        for (const [id, item] of model) expect(map.get(id)).toBe(item);
        for (const removal of removals) expect(map.has(removal)).toBe(model.has(removal));
        expect([...before.keys()].length).toBe(old.size);
        const changes = map.changesSince(before);
        expect(changes.removed).toEqual([...old.keys()].filter((id) => !model.has(id)).sort());
        expect(changes.upserted).toEqual(sorted.filter(([id, item]) => old.get(id) !== item).map(([, item]) => item));
      }
    }),
    { numRuns: 60 },
  );
});

test('a change that changes nothing returns the very same map', () => {
  const map = SortedMap.of(keyOf, numbered(300));
  const item = map.get('k00007');
  expect(map.with(item === undefined ? [] : [item], ['unknown'])).toBe(map);
});

test('an upsert wins over a removal of the same key', () => {
  const map = SortedMap.of(keyOf, numbered(3));
  const next = map.with([{ key: 'k00001', value: 9 }], ['k00001']);
  expect([...next.values()].map((item) => item.value)).toEqual([0, 9, 2]);
});

test('a removal that is taken back keeps the value', () => {
  const map = SortedMap.of(keyOf, numbered(3));
  expect(map.with([...map.values()], ['k00001'])).toBe(map);
});

test.each([
  ['k00100', 'k00100'],
  ['k001', 'k00100'],
  ['k00100x', 'k00101'],
  ['', 'k00000'],
  ['k00299', 'k00299'],
  ['z', undefined],
])('values from %j begin with %s', (start, first) => {
  const map = SortedMap.of(keyOf, numbered(300));
  expect(map.valuesFrom(start).next().value?.key).toBe(first);
});

test('is a ReadonlyMap', () => {
  const map: ReadonlyMap<string, Item> = SortedMap.of(keyOf, numbered(3));
  expect(new Map(map).size).toBe(3);
  const seen: string[] = [];
  map.forEach((item, id, all) => seen.push(`${id}=${item.value} of ${all.size}`));
  expect(seen).toEqual(['k00000=0 of 3', 'k00001=1 of 3', 'k00002=2 of 3']);
  expect([...map.keys()]).toEqual(['k00000', 'k00001', 'k00002']);
});
