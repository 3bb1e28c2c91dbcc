import { HostError, type IpFamily, parseIp, type Random } from '@switchyard/core';
import type { BpfMap } from '@switchyard/native';
import { MemoryBpfMap } from '@switchyard/native/testing';
import type { EbpfKernel, KernelFaults, MapSet, OpenedMaps } from '../kernel/kernel.ts';
import { sizesOf } from '../kernel/programs/map-sets.ts';
import { type MapName, mapShapes, type MapSizes } from '../render/layouts.ts';
import { putAddress } from '../render/address-words.ts';
import { isLarger, largerSizes } from '../kernel/maps/map-sizes.ts';
import { FaultyMap, type MapFaults, noFaults } from './faulty-map.ts';

/** Pinned objects of one family. */
interface Pinned {
  maps: MapSet;
  isAttached: boolean;
}

/** A machine without a kernel: its maps are in memory and outlive the backends that open them, as pins do. */
export class MemoryMachine {
  /** Faults from now on. */
  readonly faults: MapFaults = noFaults();
  readonly #pinned = new Map<IpFamily, Pinned>();

  /** Opens the kernel as a started agent does. */
  openKernel(ipFamily: IpFamily): MemoryKernel {
    return new MemoryKernel(ipFamily, { pinned: this.#pinned, faults: this.faults });
  }

  /** The maps of a family, if there are any. */
  mapsOf(ipFamily: IpFamily): MapSet | undefined {
    return this.#pinned.get(ipFamily)?.maps;
  }

  isAttached(ipFamily: IpFamily): boolean {
    return this.#pinned.get(ipFamily)?.isAttached ?? false;
  }

  /** Detaches the programs, as another process could. */
  detach(ipFamily: IpFamily): void {
    const pinned = this.#pinned.get(ipFamily);
    if (pinned !== undefined) pinned.isAttached = false;
  }

  /** From now on this share of all system calls that write fails. */
  injectFailures(rate: number, random: Random): void {
    this.faults.failureRate = rate;
    this.faults.random = random;
  }

  /** From now on frontends with this address are refused; undefined takes all again. */
  refuse(address: string | undefined): void {
    this.faults.refused = address === undefined ? undefined : bytesOfAddress(address);
  }

  /** Whether nothing is pinned. */
  get isEmpty(): boolean {
    return this.#pinned.size === 0;
  }
}

/** One family of a `MemoryMachine`. */
export class MemoryKernel implements EbpfKernel {
  readonly ipFamily: IpFamily;
  readonly #pinned: Map<IpFamily, Pinned>;
  readonly #faults: MapFaults;

  constructor(ipFamily: IpFamily, machine: { readonly pinned: Map<IpFamily, Pinned>; readonly faults: MapFaults }) {
    this.ipFamily = ipFamily;
    this.#pinned = machine.pinned;
    this.#faults = machine.faults;
  }

  async openMaps(sizes: MapSizes, signal: AbortSignal): Promise<OpenedMaps> {
    signal.throwIfAborted();
    const pinned = this.#pinned.get(this.ipFamily);
    if (pinned !== undefined) return { maps: await this.growMaps(sizes, signal), isNew: false };
    const maps = memoryMaps(sizes, this.#faults);
    this.#pinned.set(this.ipFamily, { maps, isAttached: false });
    return { maps, isNew: true };
  }

  async findMaps(signal: AbortSignal): Promise<MapSet | undefined> {
    signal.throwIfAborted();
    return this.#pinned.get(this.ipFamily)?.maps;
  }

  async growMaps(sizes: MapSizes, signal: AbortSignal): Promise<MapSet> {
    signal.throwIfAborted();
    const pinned = this.#require();
    const before = sizesOf(pinned.maps);
    if (!isLarger(sizes, before)) return pinned.maps;
    const larger = mapShapes(largerSizes(before, sizes));
    const grown = Object.entries(pinned.maps).map(([name, map]) => {
      const shape = larger[name as MapName]; // a map set has all names and no others
      return [name, shape.maxEntries === map.shape.maxEntries ? map : this.#copied(map, shape)] as const;
    });
    pinned.maps = Object.fromEntries(grown) as unknown as MapSet; // the same names
    return pinned.maps;
  }

  async attach(signal: AbortSignal): Promise<number> {
    signal.throwIfAborted();
    const pinned = this.#require();
    const writes = pinned.isAttached ? 0 : 1;
    pinned.isAttached = true;
    return writes;
  }

  async removeOtherVersions(): Promise<number> {
    return 0; // none ever wrote here
  }

  async findFaults(): Promise<KernelFaults> {
    const pinned = this.#pinned.get(this.ipFamily);
    if (pinned === undefined) return ['the maps are not pinned'];
    return pinned.isAttached ? [] : ['the programs are not attached'];
  }

  fingerprint(): undefined {
    // Each look reads everything.
  }

  async remove(): Promise<readonly string[]> {
    return this.#pinned.delete(this.ipFamily) ? [`maps and programs of ${this.ipFamily}`] : [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Pinned objects stay.
  }

  #require(): Pinned {
    const pinned = this.#pinned.get(this.ipFamily);
    if (pinned !== undefined) return pinned;
    throw new HostError('ebpf.noMaps', `there are no maps of ${this.ipFamily}: openMaps comes first`);
  }

  #copied(map: BpfMap, shape: BpfMap['shape']): BpfMap {
    const copy = new MemoryBpfMap(shape);
    if (shape.mmapable === true) copy.values().set(map.values());
    else {
      const { count, keys, values } = map.entries();
      copy.updateBatch(keys, values, count);
    }
    map[Symbol.dispose](); // a later write to it throws
    return new FaultyMap(copy, this.#faults);
  }
}

/** An unpinned set of maps in memory. */
export function memoryMaps(sizes: MapSizes, faults: MapFaults = noFaults()): MapSet {
  const maps = Object.entries(mapShapes(sizes)).map(
    ([name, shape]) => [name, new FaultyMap(new MemoryBpfMap(shape), faults)] as const,
  );
  return Object.fromEntries(maps) as unknown as MapSet; // the names of the shapes
}

function bytesOfAddress(address: string): Uint8Array {
  const words = new Uint32Array(4);
  putAddress(words, 0, parseIp(address));
  return new Uint8Array(words.buffer);
}
