import type { ClusterSpec } from '@switchyard/core/testing';
import {
  type ClusterObject,
  clusterObjects,
  firstState,
  nextState,
  recordsOf,
  type Scenario,
  type ScenarioState,
  type ScenarioStep,
} from '../../src/index.ts';

/** A step that looks, and holds whenever its cluster is there, however it came about. */
export type Look = Extract<ScenarioStep, { readonly kind: 'flow' | 'healthCheck' }>;

/** The scenario's states as clusters, each with what must hold in it. Equal objects are the same record. */
export function clustersOf(scenario: Scenario): ReadonlyMap<ClusterSpec, readonly Look[]> {
  const known = new Map<string, never>();
  const records = (objects: readonly ClusterObject[], kind: Parameters<typeof recordsOf>[1]): readonly never[] =>
    objects
      .filter((object) => object.kind === kind)
      .flatMap((object) => {
        const text = JSON.stringify(object);
        const [record] = known.has(text) ? [known.get(text)] : recordsOf([object], kind);
        if (record === undefined) return [];
        known.set(text, record);
        return [record];
      });
  const clusterOf = (state: ScenarioState): ClusterSpec => {
    const objects = clusterObjects(scenario, state);
    return {
      services: records(objects, 'Service'),
      slices: records(objects, 'EndpointSlice'),
      nodes: records(objects, 'Node'),
      serviceCidrs: records(objects, 'ServiceCIDR'),
    };
  };
  let state = firstState(scenario);
  let cluster = clusterOf(state);
  const looksByCluster = new Map<ClusterSpec, Look[]>([[cluster, []]]);
  for (const step of scenario.steps) {
    const next = nextState(state, step);
    if (next !== state) {
      cluster = clusterOf(next);
      looksByCluster.set(cluster, []);
    }
    state = next;
    if (step.kind === 'flow' || step.kind === 'healthCheck') looksByCluster.get(cluster)?.push(step);
  }
  return looksByCluster;
}
