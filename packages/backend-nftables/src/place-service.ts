import {
  type Endpoint,
  HostError,
  type ServiceForwarding,
  type ServicePortKey,
  sourceClasses,
  type TrafficPolicy,
} from '@switchyard/core';
import { endpointData } from './elements.ts';
import { assignSlots, maxEndpoints, slotCount } from './slots.ts';

/** Both policies, in the order in which their sets are written. */
export const policies: readonly TrafficPolicy[] = ['Cluster', 'Local'];

/** Which endpoint stands in which slot; undefined: slot i holds endpoint i, and endpoints repeat in their order. */
export type ServiceSlots = Readonly<Record<TrafficPolicy, readonly Endpoint[] | undefined>>;

/** A service and its place in the kernel: all that is kept of one. Its elements follow from it. */
export interface PlacedService {
  readonly service: ServiceForwarding;
  readonly id: number;
  /** Undefined while both sets stand in the order of their endpoints. */
  readonly slots: ServiceSlots | undefined;
}

/** What stood in the slots of each set before, as `endpointData`; holes are undefined. */
export type PreviousSlots = (policy: TrafficPolicy) => readonly (string | undefined)[];

/** Where to place a service. */
export interface Place {
  readonly id: number;
  readonly previous: PreviousSlots;
  /** Sets up to this size have one slot per endpoint. */
  readonly exactLimit: number;
}

/** A service without a past. */
export const noSlots: PreviousSlots = () => [];

/** Gives the endpoints of a service their slots. Throws `HostError` for a service that the kernel cannot hold. */
export function placeService(service: ServiceForwarding, place: Place): PlacedService {
  const cluster = placeSet(service, 'Cluster', place);
  const local = placeSet(service, 'Local', place);
  const slots = cluster === undefined && local === undefined ? undefined : { Cluster: cluster, Local: local };
  return { service, id: place.id, slots };
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
  const count = slotCount(endpoints.length, exactLimit);
  if (count === endpoints.length) return endpoints;
  return Array.from({ length: count }, (_, slot) => endpoints[slot % endpoints.length] as Endpoint);
}

/** What stands in the slots of a service, as the past of its successor. */
export function previousSlots(placed: PlacedService, exactLimit: number): PreviousSlots {
  return (policy) => slotsOf(placed, policy, exactLimit).map(endpointData);
}

function placeSet(service: ServiceForwarding, policy: TrafficPolicy, place: Place): readonly Endpoint[] | undefined {
  const endpoints = service.endpoints[policy];
  if (endpoints.length === 0 || !isUsed(service, policy)) return undefined;
  if (endpoints.length > maxEndpoints) throw tooManyEndpoints(service.key, endpoints.length);
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

function tooManyEndpoints(key: ServicePortKey, count: number): HostError {
  return new HostError(
    'nftables.too-many-endpoints',
    `cannot render ${key}: it has ${count} endpoints, one set holds ${maxEndpoints}; split the Service`,
  );
}
