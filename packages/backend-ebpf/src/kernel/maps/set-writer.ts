import { type Endpoint, HostError, type ServiceForwarding } from '@switchyard/core';
import { NativeError } from '@switchyard/native';
import { endpointFlags, mapOfSize, type MapSizes, noId } from '../../render/layouts.ts';
import { EndpointFinder } from './endpoint-finder.ts';
import {
  endpointOwnerWord,
  endpointStateWord,
  endpointWords,
  type MapState,
  serviceStateWord,
  serviceWords,
  type SetWord,
  setWords,
} from './map-state.ts';
import type { RenderedService } from '../../render/render-service.ts';

/** A map has no room for a Service; `size` is the one to grow. */
export class MapFullError extends HostError {
  readonly size: keyof MapSizes;

  constructor(size: keyof MapSizes, what: string, options?: ErrorOptions) {
    const map = mapOfSize[size];
    super('ebpf.full', `cannot write ${what}: map ${map} is full; it is written again when the map has grown`, options);
    this.size = size;
  }
}

/** Whether the kernel refused an entry because the map is full or memory is short. */
export function isMapFull(error: unknown): boolean {
  return error instanceof NativeError && ['E2BIG', 'ENOSPC', 'ENOMEM'].includes(error.errnoName);
}

/** One Service to write. */
export interface ServiceChange {
  readonly id: number;
  readonly forwarding: ServiceForwarding;
  readonly rendered: RenderedService;
  /** No frontend leads to the id yet, and its record is outdated. */
  readonly isNew: boolean;
}

/** Former sets of a service. They are removed after its frontends are written, because frontends lead to them until then. */
export interface ReplacedSets {
  readonly service: number;
  /** Sets that become empty. */
  readonly emptied: readonly SetWord[];
  /** Ranges that are no longer used. */
  readonly ranges: readonly (readonly [base: number, count: number])[];
  /** Endpoints that lose flags, with the remaining flags; 0: the endpoint is deleted. */
  readonly endpoints: readonly (readonly [id: number, flags: number])[];
}

interface WantedSet {
  readonly set: SetWord;
  readonly length: number;
  readonly isSame: boolean;
}

/** The part of `ReplacedSets` that publishing the two sets fills. */
interface LeftSets {
  readonly emptied: SetWord[];
  readonly ranges: (readonly [base: number, count: number])[];
}

const flagOfSet: Readonly<Record<SetWord, number>> = { 0: endpointFlags.inCluster, 1: endpointFlags.inLocal };

/** Writes endpoints and sets, one service at a time: make before use, one store as the commit of a set, unlink before delete. */
export class SetWriter {
  readonly #state: MapState;
  readonly #finder: EndpointFinder;
  /** Places of the finder in the order of each set; used again for the next service. */
  readonly #places: [Uint32Array, Uint32Array] = [new Uint32Array(64), new Uint32Array(64)];
  #kept: Uint32Array = new Uint32Array(64);

  constructor(state: MapState) {
    this.#state = state;
    this.#finder = new EndpointFinder(state);
  }

  /** Makes endpoints and publishes the sets that are not empty. Throws `MapFullError`; nothing was written then. */
  publish(change: ServiceChange): ReplacedSets | undefined {
    const { id, forwarding, rendered } = change;
    const finder = this.#finder;
    finder.load(id, rendered.clusterSet.length + rendered.localSet.length);
    const cluster = this.#want(id, 0, rendered.clusterSet);
    const local = this.#want(id, 1, rendered.localSet);
    finder.keepServing(forwarding.knownEndpoints);
    const [clusterBase, localBase] = this.#allocateRanges(forwarding.key, cluster, local);
    for (let place = finder.known; place < finder.count; place++) this.#makeEndpoint(id, place);
    for (let place = 0; place < finder.known; place++) this.#addFlags(place);
    this.#writeState(change);
    const left: LeftSets = { emptied: [], ranges: [] };
    this.#publishSet(change, cluster, clusterBase, left);
    this.#publishSet(change, local, localBase, left);
    const endpoints = this.#dropEndpoints(id);
    if (endpoints.length === 0 && left.ranges.length === 0 && left.emptied.length === 0) return undefined;
    return { service: id, ...left, endpoints };
  }

  /** Completes `publish`. Calls `forget` with each deleted endpoint while its record can still be read. */
  finish({ service, emptied, ranges, endpoints }: ReplacedSets, forget: (endpoint: number) => void): void {
    const state = this.#state;
    for (const set of emptied) state.select(service, set, { base: 0, count: 0 });
    for (const [id, flags] of endpoints) {
      state.setFlags(id, flags);
      if (flags === 0) this.#giveBack(id, forget);
    }
    for (const [base, count] of ranges) state.slotPool.retire(base, count);
  }

  /** Frees everything of a service without frontends. Its record stays, because a program may be reading it. */
  retire(service: number, forget: (endpoint: number) => void): void {
    const state = this.#state;
    for (const set of setWords) {
      if (state.isOwned(service, set)) state.slotPool.retire(state.baseOf(service, set), state.countOf(service, set));
      state.setOwned(service, set, false);
    }
    for (let id = state.endpointIndex.firstOf(service); id !== noId; id = state.endpointIndex.after(id)) {
      state.setFlags(id, 0);
      this.#giveBack(id, forget);
    }
    state.endpointIndex.replace(service, new Uint32Array(), 0);
    state.serviceIds.retire(service);
  }

  #publishSet({ id, isNew }: ServiceChange, wanted: WantedSet, base: number, left: LeftSets): void {
    const { set, length, isSame } = wanted;
    const state = this.#state;
    if (isSame) return;
    if (state.isOwned(id, set)) left.ranges.push([state.baseOf(id, set), state.countOf(id, set)]);
    state.setOwned(id, set, length > 0);
    if (length === 0 && !isNew) left.emptied.push(set);
    else this.#writeSet(id, set, { base, count: length });
  }

  #want(service: number, set: SetWord, endpoints: readonly Endpoint[]): WantedSet {
    const state = this.#state;
    const { length } = endpoints;
    if (length > this.#places[set].length) this.#places[set] = new Uint32Array(length * 2);
    const places = this.#places[set];
    const base = state.baseOf(service, set);
    let isSame = state.countOf(service, set) === length && (length === 0 || state.isOwned(service, set));
    for (let index = 0; index < length; index++) {
      const place = this.#finder.want(endpoints[index] as Endpoint, flagOfSet[set] | endpointFlags.alive);
      places[index] = place;
      const id = this.#finder.ids[place];
      isSame &&= id !== noId && state.slotEndpoint(base + index) === id && state.slotOwner(base + index) === service;
    }
    return { set, length, isSame };
  }

  /** Allocates a range for each set; all of them or none. */
  #allocateRanges(key: string, cluster: WantedSet, local: WantedSet): readonly [cluster: number, local: number] {
    const { slotPool, endpointIds } = this.#state;
    const missing = this.#finder.count - this.#finder.known;
    if (missing > 0 && endpointIds.available < missing) throw new MapFullError('endpoints', key);
    const clusterBase = needsRange(cluster) ? slotPool.allocate(cluster.length) : 0;
    if (clusterBase < 0) throw new MapFullError('slots', key);
    const localBase = needsRange(local) ? slotPool.allocate(local.length) : 0;
    if (localBase >= 0) return [clusterBase, localBase];
    if (needsRange(cluster)) slotPool.free(clusterBase, cluster.length);
    throw new MapFullError('slots', key);
  }

  /** Writes a new record. No program reads it: no set and no pin leads to this generation. The last store makes it alive. */
  #makeEndpoint(service: number, place: number): void {
    const { endpoints } = this.#state;
    const id = this.#state.endpointIds.allocate();
    this.#finder.ids[place] = id;
    const word = id * endpointWords;
    const finder = this.#finder;
    const before = this.#state.generationOf(id);
    const generation = (before + 1) >>> 0 || 1;
    if (before !== 0) endpoints.set(word + endpointStateWord, this.#state.portBitsOf(id), generation);
    endpoints.prepare(word, finder.wordOf(place, 0), finder.wordOf(place, 1));
    endpoints.prepare(word + 1, finder.wordOf(place, 2), finder.wordOf(place, 3));
    endpoints.prepare(word + endpointOwnerWord, service, 0);
    const flags = finder.flags[place] ?? 0;
    endpoints.set(word + endpointStateWord, finder.wordOf(place, 4) | (flags << 16), generation);
  }

  #addFlags(place: number): void {
    const id = this.#finder.ids[place] ?? noId;
    const flags = this.#state.flagsOf(id);
    const gained = flags | (this.#finder.flags[place] ?? 0);
    if (gained !== flags) this.#state.setFlags(id, gained);
  }

  #writeState({ id, rendered, isNew }: ServiceChange): void {
    const cookie = isNew ? nextCookie(this.#state.cookieOf(id)) : this.#state.cookieOf(id);
    this.#state.services.set(id * serviceWords + serviceStateWord, rendered.affinitySeconds, cookie);
    this.#state.services.set(id * serviceWords + serviceStateWord + 1, 0, 0);
  }

  #writeSet(service: number, set: SetWord, range: { readonly base: number; readonly count: number }): void {
    const { slots } = this.#state;
    const places = this.#places[set];
    const { ids } = this.#finder;
    for (let index = 0; index < range.count; index++) {
      slots.set(range.base + index, service, ids[places[index] ?? 0] ?? noId);
    }
    this.#state.select(service, set, range);
  }

  /** Reduces the list of a service to the endpoints that stay; returns those that lose flags. */
  #dropEndpoints(service: number): readonly (readonly [id: number, flags: number])[] {
    const { ids, flags, known, count } = this.#finder;
    const losers: (readonly [number, number])[] = [];
    if (count > this.#kept.length) this.#kept = new Uint32Array(count * 2);
    const kept = this.#kept;
    let length = 0;
    for (let place = 0; place < count; place++) {
      const id = ids[place] ?? noId;
      const wanted = flags[place] ?? 0;
      if (wanted !== 0) kept[length++] = id;
      if (place < known && this.#state.flagsOf(id) !== wanted) losers.push([id, wanted]);
    }
    if (length !== known || count !== known) this.#state.endpointIndex.replace(service, kept, length);
    return losers;
  }

  #giveBack(endpoint: number, forget: (endpoint: number) => void): void {
    forget(endpoint);
    this.#state.endpointIds.retire(endpoint);
  }
}

function needsRange({ isSame, length }: WantedSet): boolean {
  return !isSame && length > 0;
}

/** 16 bits, never 0. */
function nextCookie(cookie: number): number {
  return cookie >= 0xffff ? 1 : cookie + 1;
}
