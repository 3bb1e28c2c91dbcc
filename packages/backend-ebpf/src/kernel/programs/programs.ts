import { type Clock, type ForwardingTable, HostError, InvariantError, type TableDelta } from '@switchyard/core';
import type { EbpfKernel, MapSet, OpenedMaps, Wire } from '../kernel.ts';
import type { MapSizes } from '../../render/layouts.ts';
import { applyGrowing, type GrowingApply } from '../maps/apply-growing.ts';
import { sizesOf } from './map-sets.ts';
import { isLarger, neededSizes } from '../maps/map-sizes.ts';
import { type IdentifiedService, ServiceWriter, type WriteResult } from '../maps/service-writer.ts';
import type { MapsOutcome } from '../merge-outcomes.ts';
import type { OpenMapSet } from '../open-map-set.ts';

/** A part that writes what of a table belongs to no service, into maps that are open. */
export interface SettingsPart {
  /** Writes what differs; returns writes. Throws `HostError`. */
  apply(table: ForwardingTable): number;
  /** Writes what Services that come or change need; returns writes. Throws `HostError`. */
  applyServices?(upserted: TableDelta['upserted']): number;
  /** What is not as the last `apply` left it, in words. */
  findDamage(): readonly string[];
}

/** What of the kernel programs work with. */
export interface ProgramsOptions {
  readonly kernel: EbpfKernel;
  readonly maps: OpenMapSet;
  readonly settings: readonly SettingsPart[];
  readonly wire: Pick<Wire, 'isUsed' | 'ensure'>;
  readonly clock: Clock;
  /** Told of endpoints that no change names any more. */
  readonly noteGone: (gone: WriteResult['gone']) => void;
}

/**
 * Maps and programs of one family. Maps are full before a program uses them, programs that use larger maps are in place before
 * anything is written that only these hold, and the wire comes last.
 */
export class Programs {
  readonly #options: ProgramsOptions;
  #writer: ServiceWriter | undefined;

  constructor(options: ProgramsOptions) {
    this.#options = options;
  }

  /** What writes Services; undefined while it is not known what is in the maps. */
  get writer(): ServiceWriter | undefined {
    return this.#writer;
  }

  /** Every Service that has an id; none before the first apply. */
  services(): Iterable<IdentifiedService> {
    return this.#writer?.services() ?? [];
  }

  /** What is in the kernel is not known any more. */
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
    this.#take(maps);
    // Programs of the wire, also those of a process before this one, must not stay behind with maps that are written no more.
    let writes = before !== undefined && isLarger(sizesOf(maps), before) ? await this.#ensureWire(signal) : 0;
    const writer = (this.#writer ??= new ServiceWriter(maps, { clock }));
    for (const part of this.#options.settings) writes += part.apply(table);
    const outcome = await this.#write({ writer, table, delta: undefined, after }, signal);
    writes += await kernel.attach(signal);
    writes += await this.#ensureWire(signal);
    return { ...outcome, writes: outcome.writes + writes };
  }

  /** There must have been a full apply. Rejects with `HostError`. */
  async applyDelta(table: ForwardingTable, delta: TableDelta, signal: AbortSignal): Promise<MapsOutcome> {
    const writer = this.#writer;
    if (writer === undefined)
      throw new InvariantError('a difference is to be written before anything was written in full');
    let writes = 0;
    for (const part of this.#options.settings) {
      writes += delta.settingsChanged ? part.apply(table) : (part.applyServices?.(delta.upserted) ?? 0);
    }
    const outcome = await this.#write({ writer, table, delta }, signal);
    return { ...outcome, writes: outcome.writes + writes };
  }

  /** In the sizes they have where the kernel has no memory for larger ones: what fits is served. */
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
      this.#take(maps); // the old ones are closed, whatever comes next
      try {
        wireWrites += await this.#ensureWire(signal);
        wireError = undefined;
      } catch (error) {
        if (!(error instanceof HostError)) throw error;
        wireError = error; // sockets are served all the same
      }
      return maps;
    };
    const { grow: _, gone, ...result } = await applyGrowing({ ...apply, kernel: { growMaps } }, signal);
    this.#options.noteGone(gone);
    if (wireError !== undefined) throw wireError;
    return { ...result, writes: result.writes + wireWrites };
  }

  #take(maps: MapSet): void {
    if (this.#options.maps.current === maps) return;
    this.#options.maps.set(maps);
    this.#writer?.moveTo(maps);
  }

  async #ensureWire(signal: AbortSignal): Promise<number> {
    const { wire } = this.#options;
    return (await wire.isUsed(signal)) ? wire.ensure(signal) : 0;
  }
}
