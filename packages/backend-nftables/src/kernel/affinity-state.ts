import { type AffinityNumbers, noNumbers, recoverNumbers } from '../render/affinity-slots.ts';
import { type ElementId, handleClass, handleId } from '../render/elements.ts';

/** Endpoint sets with session affinity, as read from the kernel. Does not keep the elements. */
export class AffinityState {
  /** Per set: place to number. */
  readonly #places = new Map<number, Map<number, number>>();
  /** Per set: number to endpoint. */
  readonly #endpoints = new Map<number, Map<number, string>>();

  /** Records an element of `aff-slots` or `aff-endpoints`; ignores other elements. */
  add(id: ElementId, data: string): void {
    const key = id.slice(id.indexOf(' ') + 1);
    if (id.startsWith('aff-endpoints')) {
      const pin = Number(key);
      put(this.#endpoints, handleId(pin), handleClass(pin), data);
    } else if (id.startsWith('aff-slots')) {
      const [set = 0, place = 0] = key.split(' . ').map(Number);
      put(this.#places, set, place, handleClass(Number(data)));
    }
  }

  *sets(): Generator<number, undefined, unknown> {
    yield* this.#places.keys();
    yield* this.#endpoints.keys();
    return undefined;
  }

  /** The endpoint in each place of a set, as `endpointData`; undefined where a place leads nowhere. Empty: no such set. */
  row(set: number): readonly (string | undefined)[] {
    const places = this.#places.get(set);
    if (places === undefined) return [];
    const endpoints = this.#endpoints.get(set);
    const length = Math.max(...places.keys()) + 1;
    return Array.from({ length }, (_, place) => endpoints?.get(places.get(place) ?? 0));
  }

  numbers(set: number): AffinityNumbers {
    const endpoints = this.#endpoints.get(set);
    return endpoints === undefined ? noNumbers : recoverNumbers(endpoints);
  }
}

function put<T>(sets: Map<number, Map<number, T>>, set: number, key: number, value: T): void {
  const found = sets.get(set);
  if (found === undefined) sets.set(set, new Map([[key, value]]));
  else found.set(key, value);
}
