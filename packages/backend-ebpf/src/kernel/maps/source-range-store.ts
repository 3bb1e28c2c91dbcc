import type { Cidr, IpAddress } from '@switchyard/core';
import type { BpfMap } from '@switchyard/native';
import { sizeOf } from '../../render/layouts.ts';
import { prefixBits } from '../../render/settings/address-bytes.ts';
import { putAddress } from '../../render/address-words.ts';

/** Bytes of a key, and bits of its service. */
const keySize = sizeOf('source_range_key');
const serviceBits = 32;
/** Value of each range. Only the key has a meaning. */
const present = Uint8Array.of(1);

const noKeys: ReadonlyMap<string, Uint8Array> = new Map();

/** A range that another process added or deleted. */
export interface SourceRangeFault {
  readonly kind: 'added' | 'deleted';
  readonly key: Uint8Array;
}

/** The source ranges that are in the kernel, by service. Few Services have any. */
export class SourceRangeStore {
  /** Updates and deletions so far. */
  writes = 0;
  #map: BpfMap;
  #byService = new Map<number, Map<string, Uint8Array>>();

  constructor(map: BpfMap) {
    this.#map = map;
  }

  /** Replaces the map by one with the same content. */
  attach(map: BpfMap): void {
    this.#map = map;
  }

  get size(): number {
    return this.#byService.values().reduce((sum, keys) => sum + keys.size, 0);
  }

  get services(): readonly number[] {
    return [...this.#byService.keys()];
  }

  /** Replaces the record by the kernel's content. */
  adopt(): void {
    this.#byService = new Map();
    const { count, keys } = this.#map.entries();
    for (let index = 0; index < count; index++) {
      const key = keys.slice(index * keySize, (index + 1) * keySize);
      this.#note(new DataView(key.buffer).getUint32(4, true), key);
    }
  }

  /** Adds the ranges that a service lacks. Throws the kernel's error. */
  add(service: number, cidrs: readonly Cidr[]): void {
    if (cidrs.length === 0) return;
    for (const key of keysOf(service, cidrs)) {
      if (this.#keysOf(service).has(textOf(key))) continue;
      this.#map.update(key, present);
      this.writes++;
      this.#note(service, key);
    }
  }

  /** Whether a service has a range beside these. */
  hasMore(service: number, cidrs: readonly Cidr[]): boolean {
    const has = this.#byService.get(service);
    return has !== undefined && has.size !== new Set(cidrs).size;
  }

  /** Deletes all other ranges of a service. Throws the kernel's error. */
  keepOnly(service: number, cidrs: readonly Cidr[]): void {
    const has = this.#byService.get(service);
    if (has === undefined) return;
    const wanted = new Set(keysOf(service, cidrs).map(textOf));
    for (const [text, key] of has) {
      if (wanted.has(text)) continue;
      this.#map.delete(key);
      this.writes++;
      has.delete(text);
    }
    if (has.size === 0) this.#byService.delete(service);
  }

  /** Yields differences from the record, some thousand ranges with each step. Reports no deletion if an apply wrote in between. */
  *faults(): Generator<readonly SourceRangeFault[], void, undefined> {
    const map = this.#map;
    const { writes } = this;
    const found = new Set<string>();
    for (const { count, keys } of map.slices()) {
      const faults: SourceRangeFault[] = [];
      for (let index = 0; index < count; index++) {
        const key = keys.slice(index * keySize, (index + 1) * keySize);
        const text = textOf(key);
        found.add(text);
        if (!this.#keysOf(new DataView(key.buffer).getUint32(4, true)).has(text)) faults.push({ kind: 'added', key });
      }
      yield faults;
      if (this.#map !== map) return; // the map has grown, and this one is closed
    }
    if (this.writes !== writes) return;
    const all = [...this.#byService.values()].flatMap((has) => [...has]);
    yield all.flatMap(([text, key]) => (found.has(text) ? [] : [{ kind: 'deleted', key }]));
  }

  /** Writes deleted ranges again and deletes added ones. Throws the kernel's error. */
  repair(): void {
    const all = Array.from(this.faults()).flat(); // before the first is written
    for (const { kind, key } of all) {
      if (kind === 'added') this.#map.delete(key);
      else this.#map.update(key, present);
      this.writes++;
    }
  }

  #keysOf(service: number): ReadonlyMap<string, Uint8Array> {
    return this.#byService.get(service) ?? noKeys;
  }

  #note(service: number, key: Uint8Array): void {
    const keys = this.#byService.get(service) ?? new Map<string, Uint8Array>();
    this.#byService.set(service, keys.set(textOf(key), key));
  }
}

function keysOf(service: number, cidrs: readonly Cidr[]): readonly Uint8Array[] {
  return cidrs.map((cidr) => {
    const words = new Uint32Array(keySize / 4);
    words[0] = serviceBits + prefixBits(cidr);
    words[1] = service;
    putAddress(words, 2, cidr.slice(0, cidr.indexOf('/')) as IpAddress); // a CIDR's address is canonical
    return new Uint8Array(words.buffer);
  });
}

function textOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('latin1');
}
