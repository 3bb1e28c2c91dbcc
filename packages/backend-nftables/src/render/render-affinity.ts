import { type TrafficPolicy } from '@switchyard/core';
import type { AffinityNumbers } from './affinity-slots.ts';
import { type Addition, elementId, endpointData, endpointSetId, hex, packHandle } from './elements.ts';
import { type PlacedService, policies, slotsOf } from './place-service.ts';
import type { RenderContext } from './render-service.ts';

/**
 * The endpoints of a service with session affinity, in the place of its slots: `aff-slots` leads from set and place to
 * an endpoint's number, which is what a client is pinned to; `aff-endpoints` leads from there to the endpoint. Taking the
 * latter away is all that frees the clients of an endpoint. Appends nothing for a service without affinity.
 */
export function renderAffinity(placed: PlacedService, context: RenderContext, elements: Addition[]): Addition[] {
  if (placed.affinity === undefined) return elements;
  for (const policy of policies) {
    const numbers = placed.affinity.numbers[policy];
    if (numbers !== undefined) renderSet(placed, { policy, numbers, ...context }, elements);
  }
  return elements;
}

interface AffinitySet extends Pick<RenderContext, 'suffix' | 'exactLimit'> {
  readonly policy: TrafficPolicy;
  readonly numbers: AffinityNumbers;
}

function renderSet(
  placed: PlacedService,
  { policy, numbers, suffix, exactLimit }: AffinitySet,
  elements: Addition[],
): void {
  const setId = endpointSetId(placed.id, policy);
  const pinOf = (data: string): string => hex(packHandle(numbers.byEndpoint.get(data) ?? 0, setId));
  for (const data of numbers.byEndpoint.keys()) {
    elements.push({ kind: 'add', id: elementId(`aff-endpoints${suffix}`, pinOf(data)), data });
  }
  slotsOf(placed, policy, exactLimit).forEach((endpoint, place) => {
    const id = elementId(`aff-slots${suffix}`, `${hex(setId)} . ${place}`);
    elements.push({ kind: 'add', id, data: pinOf(endpointData(endpoint)) });
  });
}
