import { noId } from '../../render/layouts.ts';
import { FrontendDigest, keyWords } from '../../render/frontend-digest.ts';

/** Words of a value. */
const valueWords = 2;
export const noEntry = -1;

/** Record of the map `frontends`, found by key and by service: 48 bytes per entry, no objects. */
export class FrontendIndex {
  /** Digest of the current entries. */
  readonly digest: FrontendDigest = new FrontendDigest();
  /** Grows with each `set` and `delete`. */
  changes = 0;
  #keys: Uint32Array = new Uint32Array(256 * keyWords);
  #values: Uint32Array = new Uint32Array(256 * valueWords);
  /** First entry of each hash; the others follow in `#chain`, which also links the free entries. */
  #heads: Int32Array = new Int32Array(256).fill(noEntry);
  #chain: Int32Array = new Int32Array(256);
  #ofService: Int32Array = new Int32Array(256);
  #firstOfService: Int32Array = new Int32Array(256).fill(noEntry);
  #capacity = 256;
  #free = noEntry;
  #end = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Upper bound of entry numbers, exclusive. */
  get end(): number {
    return this.#end;
  }

  /** The entry of a key, or `noEntry`. */
  find(key: Uint32Array, at = 0): number {
    let entry = this.#heads[this.#hash(key, at)] ?? noEntry;
    while (entry !== noEntry && !this.#isKey(entry, key, at)) entry = this.#chain[entry] ?? noEntry;
    return entry;
  }

  /** The lower half of an entry's value: its service. */
  serviceOf(entry: number): number {
    return this.#values[entry * valueWords] ?? noId;
  }

  /** The upper half of an entry's value: actions and cookie. */
  restOf(entry: number): number {
    return this.#values[entry * valueWords + 1] ?? 0;
  }

  /** The six words of an entry's key; valid until the next `set`. */
  keyOf(entry: number): Uint32Array {
    return this.#keys.subarray(entry * keyWords, (entry + 1) * keyWords);
  }

  /** Records the value of a key, whose words begin at `at`. */
  set(key: Uint32Array, service: number, rest: number, at = 0): void {
    let entry = this.find(key, at);
    if (entry === noEntry) entry = this.#insert(key, at);
    else {
      this.#unlink(entry);
      this.digest.remove(this.#keys, entry * keyWords, this.#values, entry * valueWords);
    }
    this.#values[entry * valueWords] = service;
    this.#values[entry * valueWords + 1] = rest;
    this.digest.add(this.#keys, entry * keyWords, this.#values, entry * valueWords);
    this.changes++;
    this.#link(entry, service);
  }

  delete(entry: number): void {
    this.#unlink(entry);
    this.digest.remove(this.#keys, entry * keyWords, this.#values, entry * valueWords);
    this.changes++;
    const bucket = this.#hash(this.#keys, entry * keyWords);
    let before = this.#heads[bucket] ?? noEntry;
    if (before === entry) this.#heads[bucket] = this.#chain[entry] ?? noEntry;
    else {
      while (this.#chain[before] !== entry) before = this.#chain[before] ?? noEntry;
      this.#chain[before] = this.#chain[entry] ?? noEntry;
    }
    this.#chain[entry] = this.#free;
    this.#free = entry;
    this.#size--;
  }

  /** Current entries of a service, in no order. For `noId` those without a service, guards included; that passes all entries. */
  entriesOf(service: number): readonly number[] {
    if (service === noId) return this.entries().filter((entry) => this.serviceOf(entry) === noId);
    const entries: number[] = [];
    let entry = this.#firstOfService[service] ?? noEntry;
    for (; entry !== noEntry; entry = this.#ofService[entry] ?? noEntry) entries.push(entry);
    return entries;
  }

  /** Whether a service has an entry; `noId` is no service. */
  hasAny(service: number): boolean {
    return (this.#firstOfService[service] ?? noEntry) !== noEntry;
  }

  /** All entries as they are now, in no order. */
  entries(): readonly number[] {
    const found: number[] = [];
    for (const head of this.#heads) {
      for (let entry = head; entry !== noEntry; entry = this.#chain[entry] ?? noEntry) found.push(entry);
    }
    return found;
  }

  #insert(key: Uint32Array, at: number): number {
    if (this.#free === noEntry && this.#end === this.#capacity) this.#grow();
    let entry = this.#free;
    if (entry === noEntry) entry = this.#end++;
    else this.#free = this.#chain[entry] ?? noEntry;
    for (let word = 0; word < keyWords; word++) this.#keys[entry * keyWords + word] = key[at + word] ?? 0;
    const bucket = this.#hash(this.#keys, entry * keyWords);
    this.#chain[entry] = this.#heads[bucket] ?? noEntry;
    this.#heads[bucket] = entry;
    this.#size++;
    return entry;
  }

  /** Entries without a service are in no list: it would hold a guard for each cluster IP, and a removal would pass them all. */
  #link(entry: number, service: number): void {
    if (service === noId) return;
    if (service >= this.#firstOfService.length) {
      this.#firstOfService = enlarged(this.#firstOfService, Math.max(service + 1, this.#firstOfService.length * 2));
    }
    this.#ofService[entry] = this.#firstOfService[service] ?? noEntry;
    this.#firstOfService[service] = entry;
  }

  #unlink(entry: number): void {
    const service = this.serviceOf(entry);
    if (service === noId) return;
    let before = this.#firstOfService[service] ?? noEntry;
    if (before === entry) {
      this.#firstOfService[service] = this.#ofService[entry] ?? noEntry;
      return;
    }
    while (this.#ofService[before] !== entry) before = this.#ofService[before] ?? noEntry;
    this.#ofService[before] = this.#ofService[entry] ?? noEntry;
  }

  /** Doubles the capacity and the hash table, so that chains stay short. */
  #grow(): void {
    const before = this.#capacity;
    this.#capacity = before * 2;
    this.#keys = copied(this.#keys, this.#capacity * keyWords);
    this.#values = copied(this.#values, this.#capacity * valueWords);
    this.#ofService = enlarged(this.#ofService, this.#capacity);
    this.#chain = new Int32Array(this.#capacity);
    this.#heads = new Int32Array(this.#capacity).fill(noEntry);
    for (let entry = 0; entry < before; entry++) {
      const bucket = this.#hash(this.#keys, entry * keyWords);
      this.#chain[entry] = this.#heads[bucket] ?? noEntry;
      this.#heads[bucket] = entry;
    }
  }

  #hash(key: Uint32Array, at: number): number {
    let hash = 0;
    for (let word = at; word < at + keyWords; word++)
      hash = Math.imul(hash ^ (key[word] ?? 0), 0x9e3779b1) ^ (hash >>> 15);
    return (hash ^ (hash >>> 16)) & (this.#capacity - 1);
  }

  #isKey(entry: number, key: Uint32Array, at: number): boolean {
    const own = entry * keyWords;
    for (let word = 0; word < keyWords; word++) if (this.#keys[own + word] !== key[at + word]) return false;
    return true;
  }
}

function copied(array: Uint32Array, length: number): Uint32Array {
  const larger = new Uint32Array(length);
  larger.set(array);
  return larger;
}

function enlarged(array: Int32Array, length: number): Int32Array {
  const larger = new Int32Array(length).fill(noEntry);
  larger.set(array);
  return larger;
}
