import { expect, test } from 'vitest';
import { nodeName } from '../model/records/keys.ts';
import { ClusterState } from '../model/state/cluster-state.ts';
import { node, service, serviceCidr, slice } from './builders.ts';
import type { ClusterSpec } from './cluster.ts';
import { eventsBetween, expandStates } from './expand-states.ts';

const a = service('ns/a');
const states: readonly ClusterSpec[] = [
  { services: [a], slices: [slice('ns/a')] },
  { services: [a, service('ns/b')], nodes: [node('n1')], serviceCidrs: [serviceCidr('x', '10.96.0.0/16')] },
  { services: [service('ns/a', { internal: 'Local' })], slices: [slice('ns/b')] },
];

test('every sequence leads through the clusters it names', () => {
  for (const { steps } of expandStates(states)) {
    const state = new ClusterState({ nodeName: nodeName('n1') });
    for (const { batch, cluster } of steps) {
      state.apply(batch);
      expect([...state.services.values()].sort((x, y) => (x.key < y.key ? -1 : 1))).toEqual(
        [...(cluster.services ?? [])].sort((x, y) => (x.key < y.key ? -1 : 1)),
      );
      expect(state.nodes.size).toBe(cluster.nodes?.length ?? 0);
      expect(state.serviceCidrs.length).toBe(cluster.serviceCidrs?.length ?? 0);
      for (const item of cluster.slices ?? []) expect([...state.slicesOf(item.service)]).toContainEqual(item);
    }
  }
});

test.each([
  ['as written', 3],
  ['reversed', 3],
  ['with empties between', 6],
  ['squashed', 1],
  ['with every event twice', 3],
  ['with every batch twice', 6],
  ['relisted each time', 3],
  ['with the events of each step backwards', 3],
])('%s takes %i steps', (name, count) => {
  expect(expandStates(states).find((sequence) => sequence.name === name)?.steps).toHaveLength(count);
});

test('one event at a time, each step differs from the one before by one object', () => {
  const steps = expandStates(states).find((sequence) => sequence.name === 'one event at a time')?.steps ?? [];
  expect(steps.length).toBeGreaterThan(states.length);
  for (const { batch } of steps) expect(batch.length).toBeLessThanOrEqual(1);
  expect(steps.at(-1)?.cluster).toBe(states.at(-1));
});

test('between two states there is one event for each object that differs', () => {
  expect(eventsBetween(states[0]!, states[1]!).map((event) => `${event.kind} ${event.resource}`)).toEqual([
    'upsert Service',
    'upsert Node',
    'upsert ServiceCIDR',
    'delete EndpointSlice',
  ]);
});
