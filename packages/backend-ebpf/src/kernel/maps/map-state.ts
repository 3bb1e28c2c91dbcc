import type { Clock } from '@switchyard/core';
import type { MapSet } from '../kernel.ts';
import { sizesOf } from '../programs/map-sets.ts';
import { type MapSizes, noId, offsetOf, sizeOf } from '../../render/layouts.ts';
import { type AfterStore, ArrayMap } from './array-map.ts';
import { FrontendIndex } from './frontend-index.ts';
import { IdPool } from './id-pool.ts';
import { SlotPool } from './slot-pool.ts';
import { SourceRangeStore } from './source-range-store.ts';

/** Options of a map state. */
export interface MapStateOptions {
  readonly clock: Clock;
  readonly afterStore?: AfterStore;
}

/** One of a service's two sets, as the word of its record that holds the selection. */
export type SetWord = 0 | 1;
/** Both, in the order in which they are written. */
export const setWords: readonly SetWord[] = [0, 1];

/** 8-byte words of the records; the selections are the first two of a service. */
export const serviceWords: number = sizeOf('service') / 8;
export const endpointWords: number = sizeOf('endpoint') / 8;
/** The word with affinity, cookie and flags; the word with port, flags and generation; the word with the service. */
export const serviceStateWord: number = offsetOf('service', 'affinity_seconds') / 8;
export const endpointStateWord: number = offsetOf('endpoint', 'port') / 8;
export const endpointOwnerWord: number = offsetOf('endpoint', 'service') / 8;

/** Record of one family's maps as this process wrote or read them, with the allocations that follow: ids, slots, what is free. */
export class MapState {
  readonly clock: Clock;
  readonly services: ArrayMap;
  readonly endpoints: ArrayMap;
  readonly slots: ArrayMap;
  readonly sourceRanges: SourceRangeStore;
  frontends: FrontendIndex = new FrontendIndex();
  readonly endpointIndex: EndpointIndex = new EndpointIndex();
  serviceIds: IdPool;
  endpointIds: IdPool;
  slotPool: SlotPool;
  #maps: MapSet;
  /** Two bits for each service: whether the range of a set is allocated and must be freed. */
  #owned: Uint8Array = new Uint8Array(1024);

  constructor(maps: MapSet, { clock, afterStore }: MapStateOptions) {
    this.#maps = maps;
    this.clock = clock;
    this.services = new ArrayMap(maps.services, afterStore);
    this.endpoints = new ArrayMap(maps.endpoints, afterStore);
    this.slots = new ArrayMap(maps.slots, afterStore);
    this.sourceRanges = new SourceRangeStore(maps.source_ranges);
    this.serviceIds = new IdPool(clock, maps.services.shape.maxEntries);
    this.endpointIds = new IdPool(clock, maps.endpoints.shape.maxEntries);
    this.slotPool = new SlotPool(clock, maps.slots.shape.maxEntries);
  }

  get maps(): MapSet {
    return this.#maps;
  }

  get sizes(): MapSizes {
    return sizesOf(this.#maps);
  }

  /** Replaces the maps by larger ones with the same content. */
  attach(maps: MapSet): void {
    this.#maps = maps;
    this.services.attach(maps.services);
    this.endpoints.attach(maps.endpoints);
    this.slots.attach(maps.slots);
    this.sourceRanges.attach(maps.source_ranges);
    this.serviceIds.grow(maps.services.shape.maxEntries);
    this.endpointIds.grow(maps.endpoints.shape.maxEntries);
    this.slotPool.grow(maps.slots.shape.maxEntries);
  }

  get stores(): number {
    return this.services.stores + this.endpoints.stores + this.slots.stores;
  }

  cookieOf(service: number): number {
    return this.#half(this.services, service * serviceWords + serviceStateWord, 1) & 0xffff;
  }

  /** Whether the record was never used: all its words are zero. */
  isUnusedService(service: number): boolean {
    for (let word = 0; word < serviceWords; word++) {
      const at = service * serviceWords + word;
      if (this.#half(this.services, at, 0) !== 0 || this.#half(this.services, at, 1) !== 0) return false;
    }
    return true;
  }

  baseOf(service: number, set: SetWord): number {
    return this.#half(this.services, service * serviceWords + set, 0);
  }

  countOf(service: number, set: SetWord): number {
    return this.#half(this.services, service * serviceWords + set, 1) & 0xffff;
  }

  /** The commit of a set. */
  select(service: number, set: SetWord, range: { readonly base: number; readonly count: number }): void {
    const word = service * serviceWords + set;
    const generation = ((this.#half(this.services, word, 1) >>> 16) + 1) & 0xffff;
    this.services.set(word, range.base, range.count | (generation << 16));
  }

  isOwned(service: number, set: SetWord): boolean {
    return (((this.#owned[service] ?? 0) >>> set) & 1) === 1;
  }

  setOwned(service: number, set: SetWord, isOwned: boolean): void {
    if (service >= this.#owned.length) {
      const larger = new Uint8Array(Math.max(service + 1, this.#owned.length * 2));
      larger.set(this.#owned);
      this.#owned = larger;
    }
    const bits = this.#owned[service] ?? 0;
    this.#owned[service] = isOwned ? bits | (1 << set) : bits & ~(1 << set);
  }

  /** Records that no range is allocated. */
  disownAll(): void {
    this.#owned.fill(0);
  }

  slotOwner(slot: number): number {
    return this.#half(this.slots, slot, 0);
  }

  slotEndpoint(slot: number): number {
    return this.#half(this.slots, slot, 1);
  }

  flagsOf(endpoint: number): number {
    return this.#half(this.endpoints, endpoint * endpointWords + endpointStateWord, 0) >>> 16;
  }

  generationOf(endpoint: number): number {
    return this.#half(this.endpoints, endpoint * endpointWords + endpointStateWord, 1);
  }

  ownerOf(endpoint: number): number {
    return this.#half(this.endpoints, endpoint * endpointWords + endpointOwnerWord, 0);
  }

  /** Index of an endpoint's address in `endpoints.words`; the port's bits are the lower half of the fifth word. */
  addressOf(endpoint: number): number {
    return endpoint * endpointWords * 2;
  }

  portBitsOf(endpoint: number): number {
    return this.#half(this.endpoints, endpoint * endpointWords + endpointStateWord, 0) & 0xffff;
  }

  /** Sets flags with one store; the rest of the record stays. */
  setFlags(endpoint: number, flags: number): void {
    const state = endpoint * endpointWords + endpointStateWord;
    this.endpoints.set(state, this.portBitsOf(endpoint) | (flags << 16), this.generationOf(endpoint));
  }

  #half(array: ArrayMap, word: number, half: 0 | 1): number {
    return array.words[word * 2 + half] ?? noId;
  }
}

/** Endpoint ids by service, as linked lists in two arrays: four bytes per endpoint. */
class EndpointIndex {
  #first: Uint32Array = new Uint32Array(1024);
  #next: Uint32Array = new Uint32Array(4096);

  /** Adds an id, which must be in no list, to the front of a service's list. */
  add(service: number, id: number): void {
    this.#first = withRoom(this.#first, service);
    this.#next = withRoom(this.#next, id);
    this.#next[id] = this.#first[service] ?? noId;
    this.#first[service] = id;
  }

  /** The list becomes these ids. */
  replace(service: number, ids: Uint32Array, count: number): void {
    this.#first = withRoom(this.#first, service);
    let first = noId;
    for (let index = count - 1; index >= 0; index--) {
      const id = ids[index] ?? noId;
      this.#next = withRoom(this.#next, id);
      this.#next[id] = first;
      first = id;
    }
    this.#first[service] = first;
  }

  /** The first id of a service, or `noId`. */
  firstOf(service: number): number {
    return this.#first[service] ?? noId;
  }

  /** The id after another one of the same service, or `noId`. */
  after(id: number): number {
    return this.#next[id] ?? noId;
  }

  clear(): void {
    this.#first.fill(noId);
    this.#next.fill(noId);
  }
}

function withRoom(array: Uint32Array, index: number): Uint32Array {
  if (index < array.length) return array;
  const larger = new Uint32Array(Math.max(index + 1, array.length * 2));
  larger.set(array);
  return larger;
}
