import type { ArrayMap } from './array-map.ts';
import { type FrontendFault, frontendFaults, repairFrontend, sumFrontends } from './frontend-damage.ts';
import { endpointWords, type MapState, serviceWords } from './map-state.ts';
import { addressAndPort } from '@switchyard/core';
import { frontendScopes, noId } from '../../render/layouts.ts';
import { addressAt, portBits } from '../../render/address-words.ts';
import { placeOf, protocolOf } from './read-maps.ts';

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
