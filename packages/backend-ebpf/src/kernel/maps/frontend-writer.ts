import { isExpected, type ServicePortKey } from '@switchyard/core';
import { noId } from '../../render/layouts.ts';
import { bytesOf } from '../../render/address-words.ts';
import { keyWords } from '../../render/frontend-digest.ts';
import { noEntry } from './frontend-index.ts';
import type { MapState } from './map-state.ts';
import { isMapFull, MapFullError } from './set-writer.ts';

/** Entries per system call. */
const batchLength = 1024;

/** The Service that an entry belongs to; undefined for a stale entry. */
export type Owner = ServicePortKey | undefined;

/** Receives the error of a refused entry. */
type Refused = (owner: Owner, error: Error) => void;

/** Writes entries of `frontends`, many with one system call. After a refusal it writes them one by one to find the refused one. */
export class FrontendWriter {
  /** Entries written and deleted so far. */
  writes = 0;
  readonly #state: MapState;
  /** Set for each apply. */
  refused: Refused = () => {};
  readonly #keys = new Uint32Array(batchLength * keyWords);
  readonly #values = new Uint32Array(batchLength * 2);
  readonly #owners: Owner[] = [];

  constructor(state: MapState) {
    this.#state = state;
  }

  /** Writes an entry, now or with `flush`, unless the record has it. */
  put(owner: Owner, key: Uint32Array, value: { readonly service: number; readonly rest: number }): void {
    const { frontends } = this.#state;
    const entry = frontends.find(key);
    if (entry !== noEntry && frontends.serviceOf(entry) === value.service && frontends.restOf(entry) === value.rest)
      return;
    const index = this.#owners.length;
    this.#keys.set(key, index * keyWords);
    this.#values[index * 2] = value.service;
    this.#values[index * 2 + 1] = value.rest;
    this.#owners.push(owner);
    if (this.#owners.length === batchLength) this.flush();
  }

  flush(): void {
    const count = this.#owners.length;
    if (count > 1 && this.#tryBatch(count)) for (let index = 0; index < count; index++) this.#note(index);
    else for (let index = 0; index < count; index++) this.#putOne(index);
    this.#owners.length = 0;
  }

  /** Deletes entries that are still those of `service`; whether all of them are gone. */
  delete(owner: Owner, entries: readonly number[], service: number): boolean {
    const { frontends, maps } = this.#state;
    let areGone = true;
    for (const entry of entries) {
      if (frontends.serviceOf(entry) !== service) continue;
      try {
        maps.frontends.delete(bytesOf(frontends.keyOf(entry)));
      } catch (error) {
        if (!isExpected(error)) throw error;
        this.refused(owner, error);
        areGone = false;
        continue;
      }
      frontends.delete(entry);
      this.writes++;
    }
    return areGone;
  }

  #tryBatch(count: number): boolean {
    try {
      const keys = bytesOf(this.#keys.subarray(0, count * keyWords));
      this.#state.maps.frontends.updateBatch(keys, bytesOf(this.#values.subarray(0, count * 2)), count);
      return true;
    } catch (error) {
      if (!isExpected(error)) throw error;
      return false; // one entry is refused: they are written one by one
    }
  }

  #putOne(index: number): void {
    const key = this.#keys.subarray(index * keyWords, (index + 1) * keyWords);
    try {
      this.#state.maps.frontends.update(bytesOf(key), bytesOf(this.#values.subarray(index * 2, index * 2 + 2)));
    } catch (error) {
      if (!isExpected(error)) throw error;
      const owner = this.#owners[index];
      this.refused(
        owner,
        isMapFull(error) ? new MapFullError('frontends', owner ?? 'a guard', { cause: error }) : error,
      );
      return;
    }
    this.#note(index);
  }

  #note(index: number): void {
    const service = this.#values[index * 2] ?? noId;
    const rest = this.#values[index * 2 + 1] ?? 0;
    this.#state.frontends.set(this.#keys, service, rest, index * keyWords);
    this.writes++;
  }
}
