import type { ClusterEvent } from '@switchyard/core';
import { projections, type RawObjects } from '@switchyard/core/kubernetes';
import { type ClusterObject, clusterObjects } from './cluster-objects.ts';
import type { Scenario } from './scenario.ts';
import type { ScenarioState } from './scenario-state.ts';

const resources = ['Service', 'EndpointSlice', 'Node', 'ServiceCIDR'] as const;

/** The records of a state's objects that the projections accept, by resource. */
export function recordsOf<K extends keyof RawObjects>(objects: readonly ClusterObject[], kind: K): readonly never[] {
  return objects
    .filter((object) => object.kind === kind)
    .flatMap((object) => {
      // `never` lets the caller name the record type of `kind`. On the wire, times are text.
      const projected = projections[kind](object as unknown as RawObjects[K]);
      return projected.status === 'record' ? [projected.record as never] : [];
    });
}

/** The four `replace` events with which a source delivers a state. */
export function recordEvents(scenario: Scenario, state: ScenarioState): readonly ClusterEvent[] {
  const objects = clusterObjects(scenario, state);
  return resources.map((resource) => ({ kind: 'replace', resource, items: recordsOf(objects, resource) }));
}
