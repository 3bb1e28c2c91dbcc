import {
  isEqual,
  type IpAddress,
  isExpected,
  type Port,
  type ServiceForwarding,
  type ServicePortKey,
} from '@switchyard/core';
import type { HeldService, ServiceTracker, ServiceWish } from '@switchyard/core/engine';
import { type MapSizes, noId } from '../../render/layouts.ts';
import { isGuard } from './adopt.ts';
import { addressAt, bytesOf, portBits } from '../../render/address-words.ts';
import { keyWords } from '../../render/frontend-digest.ts';
import { noEntry } from './frontend-index.ts';
import type { FrontendWriter, Owner } from './frontend-writer.ts';
import type { GuardCounts } from './guard-counts.ts';
import type { MapState } from './map-state.ts';
import { guardKey, type RenderedService, renderService } from '../../render/render-service.ts';
import { isMapFull, type ReplacedSets, MapFullError, type SetWriter } from './set-writer.ts';

/** A deleted endpoint. Its id is in quarantine. */
export interface GoneEndpoint {
  readonly id: number;
  readonly generation: number;
  readonly address: IpAddress;
  readonly port: Port;
}

/** Record of a Service that has entries in the maps. */
export interface Placed extends HeldService {
  service: ServiceForwarding | undefined;
  /** Undefined for one that was found in the maps and is in no table. */
  readonly key: Owner;
  readonly isUdp: boolean;
  /** `noId` for a Service that only has guards. */
  id: number;
  guards: readonly IpAddress[];
}

export interface WriterParts {
  readonly state: MapState;
  readonly sets: SetWriter;
  readonly frontends: FrontendWriter;
  readonly guards: GuardCounts;
  readonly tracker: ServiceTracker<Placed>;
}

/** Frontends to delete, unless another service owns them by then. */
interface Stale {
  readonly owner: Owner;
  readonly service: number;
  readonly entries: readonly number[];
}

/** One apply, safe while programs read. Call `write` for each Service, then `remove`, then `finish`. */
export class ApplyRun {
  readonly failed: Map<ServicePortKey, Error> = new Map();
  readonly gone: GoneEndpoint[] = [];
  /** Sizes of the maps that had no room. */
  readonly full: Set<keyof MapSizes> = new Set();
  unremoved: Error | undefined;
  readonly #parts: WriterParts;
  readonly #guardKey = new Uint32Array(keyWords);
  readonly #added: Placed[] = [];
  readonly #removed: (readonly [placed: Placed, service: number])[] = [];
  readonly #stale: Stale[] = [];
  readonly #guarded: Placed[] = [];
  readonly #unguarded: (readonly [owner: Owner, guards: readonly IpAddress[]])[] = [];
  readonly #replaced: (readonly [placed: Placed, replaced: ReplacedSets])[] = [];
  readonly #ranged: (readonly [placed: Placed, ranges: RenderedService['sourceRanges']])[] = [];

  constructor(parts: WriterParts) {
    this.#parts = parts;
    parts.frontends.refused = (owner, error) => this.#fail(owner, error);
  }

  /** Publishes a Service and writes its frontends, or takes it out later. */
  write({ key, service }: ServiceWish): void {
    if (service === undefined) {
      const placed = this.#parts.tracker.get(key);
      if (placed !== undefined) this.remove(placed);
      return;
    }
    try {
      this.#write(service, renderService(service));
    } catch (error) {
      if (!isExpected(error)) throw error;
      this.#fail(key, error);
    }
  }

  /** Marks a Service for removal by `finish`. */
  remove(placed: Placed): void {
    this.#removed.push([placed, placed.id]);
    this.#unguard(placed, []);
  }

  /** Does what must follow all writes of frontends. `sweep`: deletes stale entries; whether all of them are gone. */
  finish({ sweep }: { readonly sweep: boolean }): boolean {
    const { frontends, state, sets, guards } = this.#parts;
    // A cluster IP is guarded as long as it has a frontend and no longer.
    for (const { key, guards: wanted } of this.#guarded) {
      for (const guard of wanted) frontends.put(key, guardKey(guard, this.#guardKey), { service: noId, rest: 0 });
    }
    frontends.flush();
    for (const placed of this.#added) if (placed.key !== undefined && this.failed.has(placed.key)) this.remove(placed);
    this.#deleteGuards(undefined, guards.drainStale());
    for (const [owner, some] of this.#unguarded) this.#deleteGuards(owner, some);
    const areSwept = sweep && this.#sweep();
    for (const { owner, service, entries } of this.#stale) frontends.delete(owner, entries, service);
    for (const [placed, service] of this.#removed) this.#removePlaced(placed, service);
    for (const [placed, replaced] of this.#replaced) sets.finish(replaced, (id) => this.#noteGone(placed, id));
    for (const [placed, ranges] of this.#ranged) {
      if (state.sourceRanges.hasMore(placed.id, ranges)) this.#keepRanges(placed.key, placed.id, ranges);
    }
    return areSwept;
  }

  #write(forwarding: ServiceForwarding, rendered: RenderedService): void {
    const { tracker } = this.#parts;
    const placed: Placed = tracker.get(forwarding.key) ?? newlyPlaced(forwarding);
    if (rendered.frontends.length > 0) this.#publish(placed, forwarding, rendered);
    else if (placed.id !== noId) {
      this.#removed.push([placed, placed.id]);
      placed.id = noId;
    }
    if (rendered.frontends.length > 0 || rendered.guards.length > 0) tracker.set(forwarding.key, placed);
    placed.service = forwarding;
    this.#unguard(placed, rendered.guards);
    if (rendered.guards.length > 0) this.#guarded.push(placed);
  }

  /** Throws `MapFullError` or the kernel's error; the maps are unchanged then. */
  #publish(placed: Placed, forwarding: ServiceForwarding, rendered: RenderedService): void {
    const { state, sets, frontends } = this.#parts;
    const isNew = placed.id === noId;
    const id = isNew ? this.#allocateId(forwarding.key) : placed.id;
    try {
      this.#addRanges(id, forwarding.key, rendered);
      const replaced = sets.publish({ id, forwarding, rendered, isNew });
      if (replaced !== undefined) this.#replaced.push([placed, replaced]);
    } catch (error) {
      if (isNew) this.#freeId(id);
      throw error;
    }
    placed.id = id;
    if (isNew) this.#added.push(placed);
    else this.#noteStale(placed, rendered);
    if (state.sourceRanges.hasMore(id, rendered.sourceRanges)) this.#ranged.push([placed, rendered.sourceRanges]);
    const cookie = state.cookieOf(id);
    for (const { key, actions } of rendered.frontends) {
      frontends.put(forwarding.key, key, { service: id, rest: (actions | (cookie << 16)) >>> 0 });
    }
  }

  #allocateId(key: ServicePortKey): number {
    const { state } = this.#parts;
    const id = state.serviceIds.allocate();
    if (id === noId) throw new MapFullError('services', key);
    if (!state.isUnusedService(id)) this.#resetStatistics(id);
    return id;
  }

  /** Clears the counters of the id's previous owner. */
  #resetStatistics(id: number): void {
    const { statistics } = this.#parts.state.maps;
    const key = bytesOf(Uint32Array.of(id));
    const before = statistics.lookup(key);
    if (before?.some((byte) => byte !== 0) === true) statistics.update(key, new Uint8Array(before.length));
  }

  #freeId(id: number): void {
    const { state } = this.#parts;
    try {
      state.sourceRanges.keepOnly(id, []);
    } catch (error) {
      if (!isExpected(error)) throw error; // the next owner of the id removes them
    }
    state.serviceIds.free(id);
  }

  #addRanges(id: number, key: ServicePortKey, { sourceRanges }: RenderedService): void {
    try {
      this.#parts.state.sourceRanges.add(id, sourceRanges);
    } catch (error) {
      throw isMapFull(error) ? new MapFullError('sourceRanges', key, { cause: error }) : error;
    }
  }

  #noteStale({ key, id }: Placed, rendered: RenderedService): void {
    const { frontends } = this.#parts.state;
    const wanted = new Set(rendered.frontends.map((frontend) => frontends.find(frontend.key)));
    const entries = frontends.entriesOf(id).filter((entry) => !wanted.has(entry));
    if (entries.length > 0) this.#stale.push({ owner: key, service: id, entries });
  }

  #unguard(placed: Placed, guards: readonly IpAddress[]): void {
    if (isEqual(placed.guards, guards)) return;
    this.#parts.guards.add(guards);
    if (placed.guards.length > 0) {
      this.#parts.guards.remove(placed.guards);
      this.#unguarded.push([placed.key, placed.guards]);
    }
    placed.guards = guards;
  }

  #deleteGuards(owner: Owner, guards: readonly IpAddress[]): void {
    const { state, frontends } = this.#parts;
    for (const guard of guards) {
      const entry = this.#parts.guards.has(guard) ? noEntry : state.frontends.find(guardKey(guard, this.#guardKey));
      if (entry !== noEntry && !frontends.delete(owner, [entry], noId)) this.#parts.guards.noteStale(guard);
    }
  }

  /** Deletes stale entries: guards that no Service wants, and entries that were invalid when the maps were adopted. */
  #sweep(): boolean {
    const { state, guards, frontends } = this.#parts;
    const stale = state.frontends.entriesOf(noId).filter((entry) => {
      const key = state.frontends.keyOf(entry);
      return !isGuard(key) || !guards.has(addressAt(key, 0));
    });
    for (const service of state.sourceRanges.services) {
      if (!state.frontends.hasAny(service)) this.#keepRanges(undefined, service, []);
    }
    return frontends.delete(undefined, stale, noId);
  }

  /** Removes a Service. If a frontend cannot be deleted, the Service keeps its id and sets, and the next apply tries again. */
  #removePlaced(placed: Placed, service: number): void {
    const { state, sets, frontends, tracker } = this.#parts;
    if (service !== noId) {
      if (!frontends.delete(placed.key, state.frontends.entriesOf(service), service)) {
        placed.id = service;
        return;
      }
      sets.retire(service, (id) => this.#noteGone(placed, id));
      this.#keepRanges(placed.key, service, []);
    }
    if (placed.id === service) placed.id = noId;
    if (placed.key !== undefined && placed.guards.length === 0) tracker.set(placed.key, undefined);
  }

  #keepRanges(owner: Owner, service: number, ranges: RenderedService['sourceRanges']): void {
    try {
      this.#parts.state.sourceRanges.keepOnly(service, ranges);
    } catch (error) {
      if (!isExpected(error)) throw error;
      this.#fail(owner, error);
    }
  }

  #noteGone({ isUdp }: Placed, id: number): void {
    if (!isUdp) return;
    const { state } = this.#parts;
    const address = addressAt(state.endpoints.words, state.addressOf(id));
    const port = portBits(state.portBitsOf(id)) as Port; // swapping bytes twice; the writer put a port there
    this.gone.push({ id, generation: state.generationOf(id), address, port });
  }

  #fail(owner: Owner, error: Error): void {
    if (error instanceof MapFullError) this.full.add(error.size);
    if (owner === undefined) {
      this.unremoved = error;
      return;
    }
    const placed = this.#parts.tracker.get(owner);
    if (placed !== undefined) placed.service = undefined;
    if (!this.failed.has(owner)) this.failed.set(owner, error);
  }
}

export function newlyPlaced({ key, protocol }: ServiceForwarding): Placed {
  return { key, service: undefined, isUdp: protocol === 'UDP', id: noId, guards: [] };
}
