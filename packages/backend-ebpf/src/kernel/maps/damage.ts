import type { ArrayMap } from './array-map.ts';
import { endpointWords, type MapState, serviceWords } from './map-state.ts';
import { addressAndPort } from '@switchyard/core';
import { frontendScopes, noId } from '../../render/layouts.ts';
import { addressAt, bytesOf, portBits, wordsOf } from '../../render/address-words.ts';
import { placeOf, protocolOf } from './read-maps.ts';
import type { BpfEntries } from '@switchyard/native';
import { FrontendDigest, keyWords } from '../../render/frontend-digest.ts';
import { noEntry } from './frontend-index.ts';

/** 8-byte words that are compared at once: 256 kB, some 30 µs. */
const sliceWords = 32_768;
/** Maximum number of differences reported per part. */
const toldOfPart = 6;

/** Yields differences from the record, a few per part of less than a millisecond. Applies may run in between. */
export function* scanDamage(state: MapState, nameOf: NameOf): Generator<readonly string[], void, undefined> {
  const arrays: readonly (readonly [ArrayMap, (word: number) => string])[] = [
    [state.services, (word) => describeService(nameOf, word)],
    [state.endpoints, (word) => describeEndpoint(state, nameOf, word)],
    [state.slots, (word) => describeSlot(state, nameOf, word)],
  ];
  for (const [array, describe] of arrays) {
    for (let from = 0; from < array.end; from += sliceWords) {
      const to = from + sliceWords;
      yield array.differs(from, to) ? firstFew(array.differences(from, to)).map(describe) : [];
    }
  }
  yield* frontendDamage(state, nameOf);
  for (const faults of state.sourceRanges.faults()) {
    yield firstFew(faults).map(({ kind }) => `map source_ranges: a source range ${kind}`);
  }
}

/** Sums frontends, at a third of the cost of looking each up; if the sums differ, looks all up in one step. */
function* frontendDamage(state: MapState, nameOf: NameOf): Generator<readonly string[], void, undefined> {
  const check = sumFrontends(state);
  let step = check.next();
  for (; step.done !== true; step = check.next()) yield [];
  if (step.value === 'whole') return;
  const parts = frontendFaults(state, toldOfPart);
  const faults = step.value === 'damaged' ? [Array.from(parts).flat()] : parts;
  for (const some of faults) yield firstFew(some).map((fault) => describeFrontend(state, nameOf, fault));
}

/** Restores the recorded content and deletes added entries. Returns the number of entries. Throws the kernel's error. */
export function repairDamage(state: MapState): number {
  let writes = 0;
  for (const array of [state.services, state.endpoints, state.slots]) {
    if (!array.differs(0, array.end)) continue;
    for (const word of array.differences(0, array.end)) array.restore(word);
  }
  for (const faults of frontendFaults(state, Infinity)) {
    for (const fault of faults) repairFrontend(state, fault);
    writes += faults.length;
  }
  state.sourceRanges.repair();
  return writes;
}

function firstFew<T>(all: Iterable<T>): readonly T[] {
  const few: T[] = [];
  for (const one of all) {
    few.push(one);
    if (few.length === toldOfPart) break;
  }
  return few;
}

/** Returns the name of the Service with an id; undefined for an unused id. */
type NameOf = (service: number) => string | undefined;

function describeService(nameOf: NameOf, word: number): string {
  return `map services: the record of ${ownerText(nameOf, Math.floor(word / serviceWords))} edited`;
}

function describeEndpoint(state: MapState, nameOf: NameOf, word: number): string {
  const id = Math.floor(word / endpointWords);
  const at = state.addressOf(id);
  const place = addressAndPort(addressAt(state.endpoints.words, at), portBits(state.portBitsOf(id)));
  return `map endpoints: ${place} of ${ownerText(nameOf, state.ownerOf(id))} edited`;
}

function describeSlot(state: MapState, nameOf: NameOf, slot: number): string {
  return `map slots: an endpoint of ${ownerText(nameOf, state.slotOwner(slot))} edited`;
}

function describeFrontend(state: MapState, nameOf: NameOf, fault: FrontendFault): string {
  if (fault.kind === 'added') return `map frontends: ${keyText(fault.key)} added`;
  const service = state.frontends.serviceOf(fault.entry);
  const owner = service === noId ? '' : ` of ${ownerText(nameOf, service)}`;
  return `map frontends: ${keyText(state.frontends.keyOf(fault.entry))}${owner} ${fault.kind}`;
}

function ownerText(nameOf: NameOf, service: number): string {
  return nameOf(service) ?? 'no Service';
}

/** The words of a key: see the layout of `frontend_key`. */
function keyText(key: Uint32Array): string {
  const { scope, protocol: number, portBits: bits } = placeOf(key);
  const protocol = protocolOf(number) ?? number;
  if (scope === frontendScopes.guard) return `guard of ${addressAt(key, 0)}`;
  if (scope === frontendScopes.nodePort) return `NodePort ${portBits(bits)}/${protocol}`;
  return `${addressAndPort(addressAt(key, 0), portBits(bits))}/${protocol}`;
}

/** A frontend that differs in the kernel. `added`: by the key, because the record has no such entry; otherwise by the entry. */
type FrontendFault =
  | { readonly kind: 'added'; readonly key: Uint32Array }
  | { readonly kind: 'edited' | 'deleted'; readonly entry: number };

/** Result of comparing sums. `changing`: an apply wrote in between, so the sums say nothing. */
type FrontendsState = 'whole' | 'damaged' | 'changing';

/** Reads all frontends, some thousand with each step, and returns whether they are what was written. */
function* sumFrontends(state: MapState): Generator<undefined, FrontendsState, undefined> {
  const { frontends } = state;
  const map = state.maps.frontends;
  const { changes } = frontends;
  const found = new FrontendDigest();
  for (const { keys, values, count } of map.slices()) {
    const keyNumbers = wordsOf(keys);
    const valueNumbers = wordsOf(values);
    for (let index = 0; index < count; index++) found.add(keyNumbers, index * keyWords, valueNumbers, index * 2);
    yield undefined;
    if (state.maps.frontends !== map) return 'changing';
  }
  if (frontends !== state.frontends || frontends.changes !== changes) return 'changing';
  return found.equals(frontends.digest) ? 'whole' : 'damaged';
}

/** Yields differences of `frontends` from the record. At the end looks for absent entries, until `limit` are found. */
function* frontendFaults(state: MapState, limit: number): Generator<readonly FrontendFault[], void, undefined> {
  const map = state.maps.frontends;
  const found = new Uint8Array(state.frontends.end);
  let count = 0;
  for (const slice of map.slices()) {
    const { faults, known } = compare(state, slice, found);
    count += known;
    yield faults;
    if (state.maps.frontends !== map) return; // the map has grown, and this one is closed
  }
  if (count !== state.frontends.size) yield missing(state, found, limit);
}

/** Writes an entry again as it was, or deletes what was added. Throws what the kernel said. */
function repairFrontend({ frontends, maps }: MapState, fault: FrontendFault): void {
  if (fault.kind === 'added') {
    maps.frontends.delete(bytesOf(fault.key));
    return;
  }
  const value = Uint32Array.of(frontends.serviceOf(fault.entry), frontends.restOf(fault.entry));
  maps.frontends.update(bytesOf(frontends.keyOf(fault.entry)), bytesOf(value));
}

/** Compares one slice and marks its entries in `found`. `known`: number of entries that are in the record. */
function compare(
  { frontends }: MapState,
  { keys, values, count }: BpfEntries,
  found: Uint8Array,
): { readonly faults: readonly FrontendFault[]; readonly known: number } {
  const keyNumbers = wordsOf(keys);
  const valueNumbers = wordsOf(values);
  const faults: FrontendFault[] = [];
  let known = 0;
  for (let index = 0; index < count; index++) {
    const entry = frontends.find(keyNumbers, index * keyWords);
    if (entry === noEntry) {
      faults.push({ kind: 'added', key: keyNumbers.slice(index * keyWords, (index + 1) * keyWords) });
      continue;
    }
    found[entry] = 1;
    known++;
    const isSame =
      frontends.serviceOf(entry) === valueNumbers[index * 2] && frontends.restOf(entry) === valueNumbers[index * 2 + 1];
    if (!isSame) faults.push({ kind: 'edited', entry });
  }
  return { faults, known };
}

/** Entries that the kernel lacks. Looks each up, because a slice also misses entries that were written in between. */
function missing({ frontends, maps }: MapState, found: Uint8Array, limit: number): readonly FrontendFault[] {
  const faults: FrontendFault[] = [];
  for (const entry of frontends.entries()) {
    if (faults.length >= limit) break;
    if (found[entry] === 1 || maps.frontends.lookup(bytesOf(frontends.keyOf(entry))) !== undefined) continue;
    faults.push({ kind: 'deleted', entry });
  }
  return faults;
}
