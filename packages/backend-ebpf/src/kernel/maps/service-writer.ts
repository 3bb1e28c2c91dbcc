import { type ForwardingTable, type ServicePortKey, type TableDelta, UsageError } from '@switchyard/core';
import { type MapFill, ServiceTracker, type ServiceWish, wishesOf } from '@switchyard/core/engine';
import type { MapSet } from '../kernel.ts';
import type { MapsOutcome } from '../merge-outcomes.ts';
import { type MapSizes, noId } from '../../render/layouts.ts';
import { adoptMaps, claimServices, isUdpService, liveServices, removeUnwanted } from './adopt.ts';
import { ApplyRun, type GoneEndpoint, newlyPlaced, type Placed, type WriterParts } from './apply-run.ts';
import { repairDamage, scanDamage } from './damage.ts';
import { FrontendWriter } from './frontend-writer.ts';
import { GuardCounts } from './guard-counts.ts';
import { doubled, isLarger } from './map-sizes.ts';
import { MapState, type MapStateOptions } from './map-state.ts';
import { SetWriter } from './set-writer.ts';

/** Result of an apply. `writes`: stores, entries written and entries deleted. */
export interface WriteResult extends MapsOutcome {
  /** Deleted UDP endpoints: sockets connected to them may be destroyed. */
  readonly gone: readonly GoneEndpoint[];
  /** Least sizes to grow the maps to, because some Services found no room. Then call `moveTo` and apply again. */
  readonly grow?: MapSizes;
}

/** A Service that programs know by an id. */
export interface IdentifiedService {
  readonly key: ServicePortKey;
  readonly id: number;
}

const nothing: ReadonlySet<ServicePortKey> = new Set();

/** Record of a Service that was found in the maps. */
const unknownPlaced = { key: undefined, service: undefined, guards: [] } as const;

/** Writes a table to the maps of one family and keeps a copy; programs never see half of a change. Synchronous. */
export class ServiceWriter {
  readonly #parts: WriterParts;
  /** Services found in the maps that no table wants. */
  #stale: readonly Placed[] = [];
  #isAdopted = false;
  /** The adopted content was not compared with a table yet. */
  #isFound = false;
  /** Some entries may be stale. */
  #hasStaleEntries = false;
  #repairs = 0;

  constructor(maps: MapSet, options: MapStateOptions) {
    const state = new MapState(maps, options);
    this.#parts = {
      state,
      sets: new SetWriter(state),
      frontends: new FrontendWriter(state),
      guards: new GuardCounts(),
      tracker: new ServiceTracker<Placed>(),
    };
  }

  /** Sizes of its maps. */
  get sizes(): MapSizes {
    return this.#parts.state.sizes;
  }

  /** All Services with an id, which is also the index of their counters in `statistics`. */
  *services(): Generator<IdentifiedService, void, undefined> {
    for (const { key, id } of this.#parts.tracker.values()) if (key !== undefined && id !== noId) yield { key, id };
  }

  /** Entries and capacity of each map. */
  fills(): readonly MapFill[] {
    const { serviceIds, endpointIds, slotPool, frontends, sourceRanges } = this.#parts.state;
    const { services, endpoints, slots, ...sizes } = this.sizes;
    return [
      { map: 'services', entries: services - serviceIds.available, capacity: services },
      { map: 'endpoints', entries: endpoints - endpointIds.available, capacity: endpoints },
      { map: 'slots', entries: slots - slotPool.available, capacity: slots },
      { map: 'frontends', entries: frontends.size, capacity: sizes.frontends },
      { map: 'source_ranges', entries: sourceRanges.size, capacity: sizes.sourceRanges },
    ];
  }

  /** Replaces the maps by larger ones with the same content. */
  moveTo(maps: MapSet): void {
    this.#parts.state.attach(maps);
  }

  /** Clears the record and adopts the maps. The next apply must be a full one. */
  adopt(): void {
    const { state, guards, tracker } = this.#parts;
    tracker.clear();
    guards.clear();
    adoptMaps(state);
    this.#isAdopted = true;
    this.#isFound = true;
    this.#hasStaleEntries = state.frontends.size > 0 || state.sourceRanges.services.length > 0;
  }

  /** Makes the maps hold the table. `after: 'drift'`: repairs, and writes only Services that are not applied. */
  applyFull(table: ForwardingTable, after?: 'drift'): WriteResult {
    const before = this.#writes;
    if (!this.#isAdopted) this.adopt();
    if (this.#isFound) this.#claim(table);
    else this.repair();
    const unknown = after === 'drift' ? nothing : 'all';
    return this.#apply(this.#parts.tracker.wishes(table.services, unknown), before);
  }

  /** Writes a delta. A full apply must precede it. */
  applyDelta(delta: TableDelta): WriteResult {
    if (!this.#isAdopted || this.#isFound) {
      throw new UsageError('ebpf.noFullApply', 'cannot apply a delta before the first full apply');
    }
    return this.#apply(wishesOf(delta), this.#writes);
  }

  /** Whether another process wrote into the arrays, which are memory; costs 0.8 ms for 240,000 endpoints. */
  get hasForeignWords(): boolean {
    const { services, endpoints, slots } = this.#parts.state;
    return [services, endpoints, slots].some((array) => array.differs(0, array.end));
  }

  /** Yields descriptions of changes by other processes, one bounded part of the maps after the other. Applies may run in between. */
  scanDamage(): Generator<readonly string[], void, undefined> {
    return scanDamage(this.#parts.state, (id) => this.#nameOf(id));
  }

  /** All descriptions of `scanDamage` at once; empty before the first apply. */
  findDamage(): readonly string[] {
    return this.#isAdopted && !this.#isFound ? [...this.scanDamage()].flat() : [];
  }

  /** Restores the recorded content and returns the number of writes. Throws the kernel's error. */
  repair(): number {
    const before = this.#writes;
    this.#repairs += repairDamage(this.#parts.state);
    return this.#writes - before;
  }

  /** Passes all Services: only for descriptions of damage. */
  #nameOf(id: number): string | undefined {
    for (const { key, id: other } of this.#parts.tracker.values()) if (other === id && id !== noId) return key;
    return undefined;
  }

  get #writes(): number {
    const { state, frontends } = this.#parts;
    return state.stores + frontends.writes + state.sourceRanges.writes + this.#repairs;
  }

  #apply(wishes: Iterable<ServiceWish>, before: number): WriteResult {
    const run = new ApplyRun(this.#parts);
    for (const wish of wishes) run.write(wish);
    for (const placed of this.#stale) run.remove(placed);
    const areSwept = run.finish({ sweep: this.#hasStaleEntries });
    this.#hasStaleEntries &&= !areSwept;
    this.#stale = this.#stale.filter(({ id }) => id !== noId);
    const { failed, gone, full, unremoved } = run;
    const larger = doubled(this.sizes, full);
    return {
      writes: this.#writes - before,
      failed,
      gone,
      ...(isLarger(larger, this.sizes) ? { grow: larger } : {}),
      ...(unremoved === undefined ? {} : { unremoved }),
    };
  }

  /** Deletes stale entries, and gives the Services of a table the ids that the maps show for them. */
  #claim(table: ForwardingTable): void {
    const { state, tracker, frontends } = this.#parts;
    const found = liveServices(state).map((id) => ({ ...unknownPlaced, isUdp: isUdpService(state, id), id }));
    removeUnwanted(state, table, frontends);
    const claimed = claimServices(state, table);
    for (const [key, id] of claimed) {
      const service = table.services.get(key);
      if (service !== undefined) tracker.set(key, { ...newlyPlaced(service), id });
    }
    const ids = new Set(claimed.values());
    this.#stale = found.filter(({ id }) => !ids.has(id));
    this.#isFound = false;
  }
}
