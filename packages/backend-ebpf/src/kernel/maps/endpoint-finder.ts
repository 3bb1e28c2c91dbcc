import type { Endpoint } from '@switchyard/core';
import { endpointFlags, noId } from '../../render/layouts.ts';
import { portBits, putAddress } from '../../render/address-words.ts';
import type { MapState } from './map-state.ts';

/** Words of an address and its port's bits. */
const placeWords = 5;
const nowhere = -1;

/** Endpoints of one service by address and port: those with a record first, then wanted ones. Reuses its memory. */
export class EndpointFinder {
  /** Endpoint id of each place; `noId` for an endpoint without a record. */
  ids: Uint32Array = new Uint32Array(64);
  /** Wanted `endpointFlags` of each place; 0 for an endpoint to delete. */
  flags: Uint8Array = new Uint8Array(64);
  /** Number of places whose endpoint has a record. */
  known = 0;
  count = 0;
  readonly #state: MapState;
  /** Addresses and ports of all places; signed, because the engine never stores such numbers as objects. */
  #keys: Int32Array = new Int32Array(64 * placeWords);
  /** Place by hash of address and port. */
  #table: Int32Array = new Int32Array(128);
  #mask = 127;
  /** The endpoint that is looked up; `#key` is the same memory in the form of `#keys`. */
  readonly #wanted: Uint32Array = new Uint32Array(placeWords);
  readonly #key: Int32Array = new Int32Array(this.#wanted.buffer);

  constructor(state: MapState) {
    this.#state = state;
  }

  /** Loads the endpoints of a service, none of them wanted yet. At most `more` will be added. */
  load(service: number, more: number): void {
    const { endpointIndex } = this.#state;
    let has = 0;
    for (let id = endpointIndex.firstOf(service); id !== noId; id = endpointIndex.after(id)) has++;
    this.#reserve(has + more);
    this.count = 0;
    for (let id = endpointIndex.firstOf(service); id !== noId; id = endpointIndex.after(id)) {
      const from = this.#state.addressOf(id);
      for (let word = 0; word < 4; word++) this.#key[word] = this.#state.endpoints.words[from + word] ?? 0;
      this.#key[4] = this.#state.portBitsOf(id);
      const bucket = this.#bucketOf();
      // A second record of the same endpoint is never found, so it stays unwanted and is deleted.
      if (this.#table[bucket] === nowhere) this.#table[bucket] = this.count;
      this.#append(id);
    }
    this.known = this.count;
  }

  /** Adds flags to an endpoint and returns its place. */
  want(endpoint: Endpoint, flags: number): number {
    const bucket = this.#lookUp(endpoint);
    let place = this.#table[bucket] ?? nowhere;
    if (place === nowhere) {
      place = this.count;
      this.#table[bucket] = place;
      this.#append(noId);
    }
    this.flags[place] = (this.flags[place] ?? 0) | flags;
    return place;
  }

  /** Keeps unwanted endpoints alive while they serve, so that their flows go on. */
  keepServing(endpoints: readonly Endpoint[]): void {
    let unwanted = 0;
    for (let place = 0; place < this.known; place++) if (this.flags[place] === 0) unwanted++;
    if (unwanted === 0) return;
    for (const endpoint of endpoints) {
      if (!endpoint.serving) continue;
      const place = this.#table[this.#lookUp(endpoint)] ?? nowhere;
      if (place !== nowhere && this.flags[place] === 0) this.flags[place] = endpointFlags.alive;
    }
  }

  /** A word of a place: 0 to 3 are its address, 4 are the port's bits. */
  wordOf(place: number, word: 0 | 1 | 2 | 3 | 4): number {
    return this.#keys[place * placeWords + word] ?? 0;
  }

  #append(id: number): void {
    const at = this.count * placeWords;
    for (let word = 0; word < placeWords; word++) this.#keys[at + word] = this.#key[word] ?? 0;
    this.ids[this.count] = id;
    this.flags[this.count] = 0;
    this.count++;
  }

  #lookUp({ address, port }: Endpoint): number {
    putAddress(this.#wanted, 0, address);
    this.#key[4] = portBits(port);
    return this.#bucketOf();
  }

  /** The bucket of `#key`, or the free one where it belongs. */
  #bucketOf(): number {
    const key = this.#key;
    const mask = this.#mask;
    let hash = 0;
    for (let word = 0; word < placeWords; word++) hash = Math.imul(hash ^ (key[word] ?? 0), 0x9e3779b1) ^ (hash >>> 15);
    let bucket = (hash ^ (hash >>> 16)) & mask;
    while (!this.#isFreeOrKey(this.#table[bucket] ?? nowhere)) bucket = (bucket + 1) & mask;
    return bucket;
  }

  #isFreeOrKey(place: number): boolean {
    if (place === nowhere) return true;
    const from = place * placeWords;
    for (let word = 0; word < placeWords; word++) if (this.#keys[from + word] !== this.#key[word]) return false;
    return true;
  }

  #reserve(places: number): void {
    if (places > this.ids.length) {
      const length = 2 ** Math.ceil(Math.log2(places));
      this.ids = new Uint32Array(length);
      this.flags = new Uint8Array(length);
      this.#keys = new Int32Array(length * placeWords);
    }
    // As small as possible, because it is cleared for each service.
    const length = 2 ** Math.ceil(Math.log2(Math.max(8, places * 2)));
    if (length > this.#table.length) this.#table = new Int32Array(length);
    this.#table.fill(nowhere, 0, length);
    this.#mask = length - 1;
  }
}
