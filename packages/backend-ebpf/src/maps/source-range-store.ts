import { type Cidr, cidrFamilyOf, cidrLength, type IpAddress } from '@switchyard/core';
import type { BpfMap } from '@switchyard/native';
import { sizeOf } from '../layouts.ts';
import { putAddress } from './address-words.ts';

/** Bytes of a key, and where the service stands in it. */
const keySize = sizeOf('source_range_key');
const serviceBits = 32;
const mappedBits = 96;
/** A range is there or not; its value says nothing. */
const present = Uint8Array.of(1);

const noKeys: ReadonlyMap<string, Uint8Array> = new Map();

/** The source ranges that are in the kernel, by service. Few Services have any. */
export class SourceRangeStore {
  /** Updates and deletions so far. */
  writes = 0;
  #map: BpfMap;
  #byService = new Map<number, Map<string, Uint8Array>>();

  constructor(map: BpfMap) {
    this.#map = map;
  }

  /** From now on they are in this map, with the same content. */
  attach(map: BpfMap): void {
    this.#map = map;
  }

  /** The services that have ranges. */
  get services(): readonly number[] {
    return [...this.#byService.keys()];
  }

  /** Takes what the kernel has. */
  adopt(): void {
    this.#byService = new Map();
    const { count, keys } = this.#map.entries();
    for (let index = 0; index < count; index++) {
      const key = keys.slice(index * keySize, (index + 1) * keySize);
      this.#note(new DataView(key.buffer).getUint32(4, true), key);
    }
  }

  /** Adds what a service lacks. Throws what the kernel said. */
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

  /** Takes away what a service has beside these. Throws what the kernel said. */
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

  /** Writes what is no longer in the kernel, takes away what is there beside; returns what was wrong, in words. */
  repair(): readonly string[] {
    const faults: string[] = [];
    const found = new Set<string>();
    const { count, keys } = this.#map.entries();
    for (let index = 0; index < count; index++) {
      const key = keys.slice(index * keySize, (index + 1) * keySize);
      const text = textOf(key);
      found.add(text);
      if (this.#keysOf(new DataView(key.buffer).getUint32(4, true)).has(text)) continue;
      this.#map.delete(key);
      faults.push('a source range was added');
    }
    for (const has of this.#byService.values()) {
      for (const [text, key] of has) {
        if (found.has(text)) continue;
        this.#map.update(key, present);
        faults.push('a source range was deleted');
      }
    }
    this.writes += faults.length;
    return faults;
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
    const length = cidrLength(cidr) + (cidrFamilyOf(cidr) === 'IPv4' ? mappedBits : 0);
    words[0] = serviceBits + length;
    words[1] = service;
    putAddress(words, 2, cidr.slice(0, cidr.indexOf('/')) as IpAddress); // a CIDR's address is canonical
    return new Uint8Array(words.buffer);
  });
}

function textOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('latin1');
}
