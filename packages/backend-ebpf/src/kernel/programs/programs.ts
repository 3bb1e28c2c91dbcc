import { type Clock, type ForwardingTable, HostError, InvariantError, type TableDelta } from '@switchyard/core';
import type { EbpfKernel, MapSet, OpenedMaps, Wire } from '../kernel.ts';
import type { MapSizes } from '../../render/layouts.ts';
import { applyGrowing, type GrowingApply } from '../maps/apply-growing.ts';
import { sizesOf } from './map-sets.ts';
import { isLarger, neededSizes } from '../maps/map-sizes.ts';
import { type IdentifiedService, ServiceWriter, type WriteResult } from '../maps/service-writer.ts';
import type { MapsOutcome } from '../merge-outcomes.ts';
import type { OpenMapSet } from '../open-map-set.ts';

/** Writes those parts of a table that belong to no service, into the open maps. */
export interface SettingsPart {
  /** Writes the differences; returns writes. Throws `HostError`. */
  apply(table: ForwardingTable): number;
  /** Writes the settings that new and changed Services need; returns writes. Throws `HostError`. */
  applyServices?(upserted: TableDelta['upserted']): number;
  /** Descriptions of differences from the last `apply`. */
  findDamage(): readonly string[];
}

export interface ProgramsOptions {
  readonly kernel: EbpfKernel;
  readonly maps: OpenMapSet;
  readonly settings: readonly SettingsPart[];
  readonly wire: Pick<Wire, 'isUsed' | 'ensure'>;
  readonly clock: Clock;
  /** Receives deleted endpoints after each write. */
  readonly noteGone: (gone: WriteResult['gone']) => void;
}

/** Maps and programs of one family. Maps are complete before a program uses them; the wire is attached last. */
export class Programs {
  readonly #options: ProgramsOptions;
  #writer: ServiceWriter | undefined;

  constructor(options: ProgramsOptions) {
    this.#options = options;
  }

  /** Writes Services; undefined while the maps' content is unknown. */
  get writer(): ServiceWriter | undefined {
    return this.#writer;
  }

  /** All Services with an id; none before the first apply. */
  services(): Iterable<IdentifiedService> {
    return this.#writer?.services() ?? [];
  }

  forget(): void {
    this.#writer = undefined;
  }

  /** `after`: as for `ServiceWriter.applyFull`. Rejects with `HostError`. */
  async applyFull(table: ForwardingTable, after: 'drift' | undefined, signal: AbortSignal): Promise<MapsOutcome> {
    const { kernel, clock } = this.#options;
    const found = await kernel.findMaps(signal);
    const before = found && sizesOf(found);
    const { maps, isNew } = await this.#open(neededSizes(table), before, signal);
    if (isNew) this.forget();
    this.#useMaps(maps);
    // The wire's programs, also those of an earlier process, must not stay with maps that are no longer written.
    let writes = before !== undefined && isLarger(sizesOf(maps), before) ? await this.#ensureWire(signal) : 0;
    const writer = (this.#writer ??= new ServiceWriter(maps, { clock }));
    for (const part of this.#options.settings) writes += part.apply(table);
    const outcome = await this.#write({ writer, table, delta: undefined, after }, signal);
    writes += await kernel.attach(signal);
    writes += await this.#ensureWire(signal);
    return { ...outcome, writes: outcome.writes + writes };
  }

  /** A full apply must precede it. Rejects with `HostError`. */
  async applyDelta(table: ForwardingTable, delta: TableDelta, signal: AbortSignal): Promise<MapsOutcome> {
    const writer = this.#writer;
    if (writer === undefined) throw new InvariantError('cannot apply a delta before the first full apply');
    let writes = 0;
    for (const part of this.#options.settings) {
      writes += delta.settingsChanged ? part.apply(table) : (part.applyServices?.(delta.upserted) ?? 0);
    }
    const outcome = await this.#write({ writer, table, delta }, signal);
    return { ...outcome, writes: outcome.writes + writes };
  }

  /** Opens the maps in their current sizes if the kernel has no memory for larger ones, so that the Services that fit are served. */
  async #open(sizes: MapSizes, before: MapSizes | undefined, signal: AbortSignal): Promise<OpenedMaps> {
    const { kernel } = this.#options;
    try {
      return await kernel.openMaps(sizes, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (before === undefined || !(error instanceof HostError)) throw error;
      return kernel.openMaps(before, signal);
    }
  }

  async #write(apply: Omit<GrowingApply, 'kernel'>, signal: AbortSignal): Promise<MapsOutcome> {
    let wireWrites = 0;
    let wireError: HostError | undefined;
    const growMaps = async (sizes: MapSizes): Promise<MapSet> => {
      const maps = await this.#options.kernel.growMaps(sizes, signal);
      this.#useMaps(maps); // first, because the old ones are closed
      try {
        wireWrites += await this.#ensureWire(signal);
        wireError = undefined;
      } catch (error) {
        if (!(error instanceof HostError)) throw error;
        wireError = error; // thrown later: sockets can be served without the wire
      }
      return maps;
    };
    const { grow: _, gone, ...result } = await applyGrowing({ ...apply, kernel: { growMaps } }, signal);
    this.#options.noteGone(gone);
    if (wireError !== undefined) throw wireError;
    return { ...result, writes: result.writes + wireWrites };
  }

  #useMaps(maps: MapSet): void {
    if (this.#options.maps.current === maps) return;
    this.#options.maps.set(maps);
    this.#writer?.moveTo(maps);
  }

  async #ensureWire(signal: AbortSignal): Promise<number> {
    const { wire } = this.#options;
    return (await wire.isUsed(signal)) ? wire.ensure(signal) : 0;
  }
}
