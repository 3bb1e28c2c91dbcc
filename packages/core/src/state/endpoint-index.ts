import { isEqual } from '../equal.ts';
import type { EndpointSliceRecord } from '../records/endpoint-slice.ts';
import type { ServiceKey, SliceKey } from '../records/keys.ts';

const noSlices: readonly EndpointSliceRecord[] = [];

/**
 * EndpointSlices by their own key and by Service. One array per Service and nothing per endpoint:
 * at 10,000 Services the index itself must not be what fills the heap. Owned by `ClusterState`.
 */
export class EndpointIndex {
  readonly #slices = new Map<SliceKey, EndpointSliceRecord>();
  readonly #byService = new Map<ServiceKey, EndpointSliceRecord[]>();

  get size(): number {
    return this.#slices.size;
  }

  keys(): Iterable<SliceKey> {
    return this.#slices.keys();
  }

  /** Slices of a Service, all families, in no particular order. */
  slicesOf(service: ServiceKey): readonly EndpointSliceRecord[] {
    return this.#byService.get(service) ?? noSlices;
  }

  /**
   * Stores a slice. Returns the Services that must be rebuilt: none if only the trigger time differs,
   * two if the slice moved from one Service to another.
   */
  upsert(slice: EndpointSliceRecord): readonly ServiceKey[] {
    const previous = this.#slices.get(slice.key);
    if (previous !== undefined && isSameForwarding(previous, slice)) {
      if (previous.lastChangeTriggerTime !== slice.lastChangeTriggerTime) this.#replace(previous, slice);
      return [];
    }
    if (previous?.service === slice.service) {
      this.#replace(previous, slice);
      return [slice.service];
    }
    const left = this.delete(slice.key);
    this.#slices.set(slice.key, slice);
    const siblings = this.#byService.get(slice.service);
    if (siblings === undefined) this.#byService.set(slice.service, [slice]);
    else siblings.push(slice);
    return [...left, slice.service];
  }

  /** Forgets a slice. Returns the Service that must be rebuilt; none if the slice was unknown. */
  delete(key: SliceKey): readonly ServiceKey[] {
    const slice = this.#slices.get(key);
    if (slice === undefined) return [];
    this.#slices.delete(key);
    const siblings = this.#byService.get(slice.service) ?? [];
    if (siblings.length === 1) this.#byService.delete(slice.service);
    else siblings.splice(siblings.indexOf(slice), 1);
    return [slice.service];
  }

  #replace(previous: EndpointSliceRecord, slice: EndpointSliceRecord): void {
    this.#slices.set(slice.key, slice);
    const siblings = this.#byService.get(slice.service) ?? [];
    siblings[siblings.indexOf(previous)] = slice;
  }
}

/** The trigger time says when, not what: an update of it alone changes no forwarding (fact 47). */
function isSameForwarding(a: EndpointSliceRecord, b: EndpointSliceRecord): boolean {
  return (
    a.service === b.service &&
    a.ipFamily === b.ipFamily &&
    isEqual(a.ports, b.ports) &&
    isEqual(a.endpoints, b.endpoints)
  );
}
