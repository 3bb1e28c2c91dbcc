import {
  type Endpoint,
  HostError,
  type ServiceForwarding,
  type ServicePortKey,
  sourceClasses,
  type TrafficPolicy,
} from '@switchyard/core';
import {
  type AffinityNumbers,
  assignNumbers,
  exactAffinitySlots,
  maxAffinityEndpoints,
  noNumbers,
} from './affinity-slots.ts';
import { endpointData } from './elements.ts';

/** Both policies, in the order in which their sets are written. */
export const policies: readonly TrafficPolicy[] = ['Cluster', 'Local'];

/** Which endpoint stands in which slot; undefined: slot i holds endpoint i, and endpoints repeat in their order. */
export type ServiceSlots = Readonly<Record<TrafficPolicy, readonly Endpoint[] | undefined>>;

/** A service and its place in the kernel. Its elements follow from this record. */
export interface PlacedService {
  readonly service: ServiceForwarding;
  readonly id: number;
  /** Undefined while both sets stand in the order of their endpoints. */
  readonly slots: ServiceSlots | undefined;
  /** Undefined without session affinity. */
  readonly affinity: ServiceAffinity | undefined;
}

/** Session affinity of a service, and its timeout. */
export interface ServiceAffinity {
  readonly timeoutSeconds: number;
  /** Undefined for a set that is not in the kernel. */
  readonly numbers: Readonly<Record<TrafficPolicy, AffinityNumbers | undefined>>;
}

/** Previous content of each set's slots, as `endpointData`; holes are undefined. */
export type PreviousSlots = (policy: TrafficPolicy) => readonly (string | undefined)[];

/** The numbers that the endpoints of each set had before. */
export type PreviousNumbers = (policy: TrafficPolicy) => AffinityNumbers;

export interface Place {
  readonly id: number;
  readonly previous: PreviousSlots;
  readonly numbers: PreviousNumbers;
  /** Sets up to this size have one slot per endpoint. */
  readonly exactLimit: number;
  /** Whether session affinity is possible; if not, connections of such a Service are balanced one by one. */
  readonly hasAffinity: boolean;
}

export const noSlots: PreviousSlots = () => [];
export const noPreviousNumbers: PreviousNumbers = () => noNumbers;

/** Assigns a slot to each endpoint. Throws `HostError` if the service exceeds the kernel's limits. */
export function placeService(service: ServiceForwarding, place: Place): PlacedService {
  const { sessionAffinity } = service;
  const isKept = place.hasAffinity && sessionAffinity.kind === 'clientIP';
  const limits = isKept
    ? { exactLimit: exactLimitOf(true, place.exactLimit), max: maxAffinityEndpoints }
    : { exactLimit: place.exactLimit, max: maxEndpoints };
  const cluster = placeSet(service, 'Cluster', { ...limits, previous: place.previous });
  const local = placeSet(service, 'Local', { ...limits, previous: place.previous });
  const slots = cluster === undefined && local === undefined ? undefined : { Cluster: cluster, Local: local };
  return {
    service,
    id: place.id,
    slots,
    affinity: isKept ? placeAffinity(service, sessionAffinity.timeout / 1000, place) : undefined,
  };
}

function placeAffinity(service: ServiceForwarding, timeoutSeconds: number, place: Place): ServiceAffinity {
  const numbers = (policy: TrafficPolicy): AffinityNumbers | undefined => {
    const endpoints = isUsed(service, policy) ? service.endpoints[policy] : [];
    return endpoints.length === 0 ? undefined : assignNumbers(place.numbers(policy), endpoints.map(endpointData));
  };
  return { timeoutSeconds, numbers: { Cluster: numbers('Cluster'), Local: numbers('Local') } };
}

function exactLimitOf(hasAffinity: boolean, exactLimit: number): number {
  return hasAffinity ? Math.min(exactLimit, exactAffinitySlots) : exactLimit;
}

/** Whether a decision of the service leads to this set; if none does, it is not in the kernel. */
export function isUsed(service: ServiceForwarding, policy: TrafficPolicy): boolean {
  for (const { decisions } of service.frontends) {
    for (const source of sourceClasses) {
      const decision = decisions[source];
      if (decision.kind === 'forward' && decision.to === policy) return true;
    }
  }
  return false;
}

/** The endpoint in each slot of a set, in order. */
export function slotsOf(placed: PlacedService, policy: TrafficPolicy, exactLimit: number): readonly Endpoint[] {
  if (!isUsed(placed.service, policy)) return [];
  const moved = placed.slots?.[policy];
  if (moved !== undefined) return moved;
  const endpoints = placed.service.endpoints[policy];
  const count = slotCount(endpoints.length, exactLimitOf(placed.affinity !== undefined, exactLimit));
  if (count === endpoints.length) return endpoints;
  return Array.from({ length: count }, (_, slot) => endpoints[slot % endpoints.length] as Endpoint);
}

export function previousSlots(placed: PlacedService, exactLimit: number): PreviousSlots {
  return (policy) => slotsOf(placed, policy, exactLimit).map(endpointData);
}

export function previousNumbers(placed: PlacedService): PreviousNumbers {
  return (policy) => placed.affinity?.numbers[policy] ?? noNumbers;
}

interface SetPlace extends Pick<Place, 'previous' | 'exactLimit'> {
  readonly max: number;
}

function placeSet(service: ServiceForwarding, policy: TrafficPolicy, place: SetPlace): readonly Endpoint[] | undefined {
  const endpoints = service.endpoints[policy];
  if (endpoints.length === 0 || !isUsed(service, policy)) return undefined;
  if (endpoints.length > place.max) throw tooManyEndpoints(service.key, endpoints.length, place.max);
  const previous = place.previous(policy);
  if (previous.length === 0 || isInOrder(previous, endpoints)) return undefined;
  const byData = new Map(endpoints.map((endpoint) => [endpointData(endpoint), endpoint]));
  const slots = assignSlots({ previous, endpoints: [...byData.keys()], exactLimit: place.exactLimit });
  const placed = slots.map((data) => byData.get(data) as Endpoint); // slots hold nothing else
  return placed.every((endpoint, slot) => endpoint === endpoints[slot % endpoints.length]) ? undefined : placed;
}

/** Nearly always so when a table is adopted. */
function isInOrder(previous: readonly (string | undefined)[], endpoints: readonly Endpoint[]): boolean {
  if (previous.length !== endpoints.length) return false;
  return endpoints.every((endpoint, slot) => previous[slot] === endpointData(endpoint));
}

function tooManyEndpoints(key: ServicePortKey, count: number, max: number): HostError {
  const advice = max === maxEndpoints ? 'split the Service' : 'split the Service or set its sessionAffinity to None';
  return new HostError(
    'nftables.too-many-endpoints',
    `cannot render ${key}: it has ${count} endpoints, one set holds ${max}; ${advice}`,
  );
}

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

/** The number of slots of a load-balancing class; undefined for any other class. */
export function slotsOfClass(handleClass: number): number | undefined {
  if (handleClass <= exactSlotCounts) return handleClass === 0 ? undefined : handleClass;
  return largeSlotCounts[handleClass - firstLargeClass];
}

export interface SlotsWanted {
  /** The content of the slots so far, with holes. */
  readonly previous: readonly (string | undefined)[];
  /** Distinct. */
  readonly endpoints: readonly string[];
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
