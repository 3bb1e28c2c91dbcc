/**
 * An endpoint set is a row of slots numbered from 0; the kernel picks one at random. Sets up to a limit have
 * one slot per endpoint. Above it the number of slots is one of a few, at least eight per endpoint while
 * that is possible, and endpoints repeat: shares then differ by at most one slot in eight.
 */
export const exactSlotCounts = 1024;

/** Every number of slots up to this has its chain in the rules; more only where chains can be added at run time. */
export const preloadedSlotCounts = 64;

/** Numbers of slots for larger sets, all of them in the rules. */
export const largeSlotCounts: readonly number[] = [4096, 8192, 16_384, 32_768, 65_536];

/** The load-balancing class of the first of `largeSlotCounts`; the others follow. */
const firstLargeClass = 0x7f0;

/** More endpoints than this in one set cannot be rendered. */
export const maxEndpoints = 65_536;

/** How many slots a set of `endpoints` distinct endpoints has, when sets up to `exactLimit` have one slot each. */
export function slotCount(endpoints: number, exactLimit: number): number {
  if (endpoints <= exactLimit) return endpoints;
  return largeSlotCounts.find((count) => count >= endpoints * 8) ?? maxEndpoints;
}

/** Every number of slots the rules are prepared for, with its load-balancing class. */
export const loadBalancingClasses: readonly { readonly slots: number; readonly handleClass: number }[] = [
  ...Array.from({ length: preloadedSlotCounts }, (_, index) => ({ slots: index + 1, handleClass: index + 1 })),
  ...largeSlotCounts.map((slots, index) => ({ slots, handleClass: firstLargeClass + index })),
];

/** The load-balancing class of a number of slots that `slotCount` returned; 0 slots have none. */
export function loadBalancingClass(slots: number): number {
  return slots <= exactSlotCounts ? slots : firstLargeClass + largeSlotCounts.indexOf(slots);
}

/** The number of slots of a load-balancing class; undefined when it is none of ours. */
export function slotsOfClass(handleClass: number): number | undefined {
  if (handleClass <= exactSlotCounts) return handleClass === 0 ? undefined : handleClass;
  return largeSlotCounts[handleClass - firstLargeClass];
}

/** What `assignSlots` starts from. */
export interface SlotsWanted {
  /** What stands in the slots by now, and holes. */
  readonly previous: readonly (string | undefined)[];
  /** Distinct. */
  readonly endpoints: readonly string[];
  /** Sets up to this size have one slot per endpoint. */
  readonly exactLimit: number;
}

/**
 * Which endpoint stands in which slot: as before wherever that is still right, so that one endpoint more or
 * less touches as few slots as possible (one when it is added, two when it is removed).
 *
 * Every endpoint gets the same number of slots, or one more. Without `previous` slot i holds endpoint i, and
 * endpoints repeat in their order.
 */
export function assignSlots({ previous, endpoints, exactLimit }: SlotsWanted): string[] {
  const count = slotCount(endpoints.length, exactLimit);
  if (count === endpoints.length) return assignExact(previous, endpoints);
  const quotas = new Quotas(endpoints, count);
  const slots: (string | undefined)[] = Array.from({ length: count }, (_, index) => quotas.keep(previous[index]));
  const missing = quotas.missing();
  return slots.map((slot) => slot ?? missing.next().value ?? '');
}

/** One slot each: by far the most sets, and on the way of every change. */
function assignExact(previous: readonly (string | undefined)[], endpoints: readonly string[]): string[] {
  const missing = new Set(endpoints);
  const kept = endpoints.map((_, index) => {
    const before = previous[index];
    return before !== undefined && missing.delete(before) ? before : undefined;
  });
  const rest = missing.values();
  return kept.map((endpoint) => endpoint ?? rest.next().value ?? '');
}

/** How many slots each endpoint may still take. */
class Quotas {
  readonly #share: number;
  readonly #taken: Map<string, number>;
  /** How many endpoints may still have one slot more than the others. */
  #extras: number;

  constructor(endpoints: readonly string[], count: number) {
    this.#share = endpoints.length === 0 ? 0 : Math.floor(count / endpoints.length);
    this.#extras = count - this.#share * endpoints.length;
    this.#taken = new Map(endpoints.map((endpoint) => [endpoint, 0]));
  }

  /** `endpoint` if it is wanted and has not got its share yet. */
  keep(endpoint: string | undefined): string | undefined {
    const taken = endpoint === undefined ? undefined : this.#taken.get(endpoint);
    if (endpoint === undefined || taken === undefined || taken > this.#share) return undefined;
    if (taken === this.#share) {
      if (this.#extras === 0) return undefined;
      this.#extras--;
    }
    this.#taken.set(endpoint, taken + 1);
    return endpoint;
  }

  /** Endpoints for the free slots: round and round, in order, first to equal shares, then the extra ones. */
  *missing(): Generator<string, undefined, unknown> {
    for (let level = 0; level < this.#share; level++) {
      for (const [endpoint, taken] of this.#taken) if (taken <= level) yield endpoint;
    }
    for (const [endpoint, taken] of this.#taken) {
      if (taken <= this.#share) yield endpoint;
    }
    return undefined;
  }
}
