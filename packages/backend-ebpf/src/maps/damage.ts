import type { ArrayMap } from './array-map.ts';
import { addressAt } from './address-words.ts';
import { keyWords, noEntry } from './frontend-index.ts';
import { endpointWords, type MapState, serviceWords } from './map-state.ts';

/** 8-byte words that are compared at once: 256 kB, some 30 µs. */
const sliceWords = 32_768;

/**
 * Compares the maps with what was written, a bounded part between two steps, and yields what somebody changed, in words; the first
 * few of many in a part. It may run while nobody writes, or be dropped half way.
 */
export function* scanDamage(state: MapState): Generator<readonly string[], void, undefined> {
  const arrays: readonly (readonly [ArrayMap, (word: number) => string])[] = [
    [state.services, (word) => `the record of a service changed (word ${word % serviceWords})`],
    [
      state.endpoints,
      (word) =>
        `endpoint ${addressAt(state.endpoints.words, Math.floor(word / endpointWords) * endpointWords * 2)} changed`,
    ],
    [state.slots, () => 'a slot changed'],
  ];
  for (const [array, describe] of arrays) {
    for (let from = 0; from < array.end; from += sliceWords) {
      yield array.differs(from, from + sliceWords)
        ? [...firstFew(array.differences(from, from + sliceWords))].map(describe)
        : [];
    }
  }
  yield frontendDamage(state, 'look');
}

/** Writes everything again as it was, and deletes what was added. Returns how much there was. Throws what the kernel said. */
export function repairDamage(state: MapState): number {
  let writes = 0;
  for (const array of [state.services, state.endpoints, state.slots]) {
    if (!array.differs(0, array.end)) continue;
    for (const word of array.differences(0, array.end)) array.restore(word);
  }
  writes += frontendDamage(state, 'repair').length;
  state.sourceRanges.repair();
  return writes;
}

function frontendDamage(state: MapState, mode: 'look' | 'repair'): readonly string[] {
  const { frontends, maps } = state;
  const { count, keys, values } = maps.frontends.entries();
  const keyNumbers = new Uint32Array(keys.slice().buffer);
  const valueNumbers = new Uint32Array(values.slice().buffer);
  const found = new Uint8Array(frontends.end);
  const faults: string[] = [];
  const write = (entry: number): void => {
    const value = Uint32Array.of(frontends.serviceOf(entry), frontends.restOf(entry));
    maps.frontends.update(bytesOf(frontends.keyOf(entry)), bytesOf(value));
  };
  for (let index = 0; index < count; index++) {
    const entry = frontends.find(keyNumbers, index * keyWords);
    if (entry === noEntry) {
      faults.push('a frontend was added');
      if (mode === 'repair') maps.frontends.delete(keys.slice(index * keyWords * 4, (index + 1) * keyWords * 4));
      continue;
    }
    found[entry] = 1;
    const isSame =
      frontends.serviceOf(entry) === valueNumbers[index * 2] && frontends.restOf(entry) === valueNumbers[index * 2 + 1];
    if (isSame) continue;
    faults.push(`the frontend ${addressAt(frontends.keyOf(entry), 0)} changed`);
    if (mode === 'repair') write(entry);
  }
  if (count - faults.length === frontends.size) return faults;
  for (const entry of frontends.entries()) {
    if (found[entry] === 1) continue;
    faults.push(`the frontend ${addressAt(frontends.keyOf(entry), 0)} was deleted`);
    if (mode === 'repair') write(entry);
  }
  return faults;
}

function bytesOf(words: Uint32Array): Uint8Array {
  return new Uint8Array(words.slice().buffer);
}

function* firstFew<T>(all: Iterable<T>): Generator<T, void, undefined> {
  let left = 5;
  for (const one of all) {
    if (left-- === 0) return;
    yield one;
  }
}
