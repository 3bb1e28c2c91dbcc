import { loadBpfAddon } from './bpf-addon.ts';
import { fdOf } from './kernel-program.ts';
import type { BpfLink, BpfMap } from './types.ts';

/** Objects of the kernel that other processes may change. */
export interface FingerprintParts {
  readonly links: readonly BpfLink[];
  /** Maps with few elements, and without values per CPU. */
  readonly maps: readonly BpfMap[];
  /** Paths of folders, of which the names count. */
  readonly folders: readonly string[];
}

/**
 * A number that changes, but for a chance of 2^-64, when a link gets another program or is detached, when an element of a map is
 * written, and when a name in a folder changes. It costs about a microsecond for each object. Two changes of a folder within the tick
 * of the kernel's clock for files (10 ms) count once.
 */
export function fingerprint({ links, maps, folders }: FingerprintParts): bigint {
  const places = maps.flatMap((map) => [fdOf(map), map.shape.keySize, map.shape.valueSize]);
  return loadBpfAddon().fingerprint(Int32Array.from(links, fdOf), Int32Array.from(places), folders);
}

/** Finds writes into a map with many elements: reading them costs 0.25 microseconds each, so later calls read a slice of 2048. */
export class MapWatch {
  #map: BpfMap | undefined;
  #slices: readonly bigint[] = [];
  /** The slice that is read next. */
  #next = 0;
  /** Its length, at most 255, then its bytes: a bucket or a key. */
  #position = new Uint8Array(0);

  /** Reads all elements. */
  read(map: BpfMap): void {
    this.#map = map;
    this.#position = new Uint8Array(1 + Math.max(8, map.shape.keySize));
    this.#next = 0;
    const slices: bigint[] = [];
    do slices.push(this.#slice(map));
    while (this.#position[0] !== 0);
    this.#slices = slices;
  }

  /** Whether the next slice is as `read` found it; false for another map. */
  isSame(map: BpfMap): boolean {
    if (map !== this.#map || this.#slice(map) !== this.#slices[this.#next]) return false;
    this.#next = this.#position[0] === 0 ? 0 : this.#next + 1;
    return true;
  }

  #slice(map: BpfMap): bigint {
    const { keySize, valueSize } = map.shape;
    return loadBpfAddon().sliceFingerprint(fdOf(map), keySize, valueSize, this.#position);
  }
}
