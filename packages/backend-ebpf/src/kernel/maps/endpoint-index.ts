import { noId } from '../../render/layouts.ts';

/** Endpoint ids by service, as linked lists in two arrays: four bytes per endpoint. */
export class EndpointIndex {
  #first: Uint32Array = new Uint32Array(1024);
  #next: Uint32Array = new Uint32Array(4096);

  /** Adds an id, which must be in no list, to the front of a service's list. */
  add(service: number, id: number): void {
    this.#first = withRoom(this.#first, service);
    this.#next = withRoom(this.#next, id);
    this.#next[id] = this.#first[service] ?? noId;
    this.#first[service] = id;
  }

  /** The list becomes these ids. */
  replace(service: number, ids: Uint32Array, count: number): void {
    this.#first = withRoom(this.#first, service);
    let first = noId;
    for (let index = count - 1; index >= 0; index--) {
      const id = ids[index] ?? noId;
      this.#next = withRoom(this.#next, id);
      this.#next[id] = first;
      first = id;
    }
    this.#first[service] = first;
  }

  /** The first id of a service, or `noId`. */
  firstOf(service: number): number {
    return this.#first[service] ?? noId;
  }

  /** The id after another one of the same service, or `noId`. */
  after(id: number): number {
    return this.#next[id] ?? noId;
  }

  /** Forgets all. */
  clear(): void {
    this.#first.fill(noId);
    this.#next.fill(noId);
  }
}

function withRoom(array: Uint32Array, index: number): Uint32Array {
  if (index < array.length) return array;
  const larger = new Uint32Array(Math.max(index + 1, array.length * 2));
  larger.set(array);
  return larger;
}
