import { expect, test } from 'vitest';
import { nodeName } from '../records/keys.ts';
import { ClusterState } from '../state/cluster-state.ts';
import { node, tableOptions } from '../../testing/builders.ts';
import { replaceAll } from '../../testing/expand-states.ts';
import { largeService, largeSlice } from '../../testing/large-service.ts';
import { buildContext, prepareService } from './build-service.ts';
import { buildTable } from './build-table.ts';
import { finish } from '../../base/steps.ts';

const key = largeService(1).key;

/** A port that counts the reads of its name. */
function counted<P extends { readonly name: string }>(port: P, reads: { count: number }): P {
  const name = port.name;
  return Object.defineProperty({ ...port }, 'name', { enumerable: true, get: () => (reads.count++, name) });
}

/** A Service of 100 ports per slice, and how often names of ports were read. */
function countingState(slices: number): { readonly state: ClusterState; readonly reads: { count: number } } {
  const reads = { count: 0 };
  const service = largeService(slices * 100);
  const state = new ClusterState({ nodeName: nodeName('n1') });
  state.apply(
    replaceAll({
      services: [{ ...service, ports: service.ports.map((port) => counted(port, reads)) }],
      slices: Array.from({ length: slices }, (_, index) => {
        const item = largeSlice(index, 2);
        return { ...item, ports: item.ports.map((port) => counted(port, reads)) };
      }),
      nodes: [node('n1')],
    }),
  );
  reads.count = 0;
  return { state, reads };
}

test('a build reads the name of each port a few times, however many slices there are', () => {
  const { state, reads } = countingState(10);
  const table = buildTable(state, new Set([key]), buildTable(state, 'all', undefined, tableOptions()), tableOptions());
  expect(table.services.size).toBe(1000);
  expect(table.services.values().every(({ endpoints }) => endpoints.Cluster.length === 2)).toBe(true);
  // Two builds, 1000 ports of the Service and 1000 of slices.
  expect(reads.count).toBeLessThanOrEqual(2 * 3 * 2000);
});

test('a build after the change of one slice builds the ports of that slice', () => {
  const { state } = countingState(10);
  const context = buildContext(state, tableOptions());
  const before = finish(prepareService(key, context, undefined));
  state.apply([{ kind: 'upsert', resource: 'EndpointSlice', item: largeSlice(3, 1) }]);
  const after = finish(prepareService(key, buildContext(state, tableOptions()), before));
  const known = new Set(before.ports);
  expect(after.ports.filter((port) => !known.has(port)).map((port) => port.key)).toEqual(
    largeSlice(3, 1).ports.map(({ name }) => `${key}:${name}/TCP`),
  );
  expect(after.ports).toEqual(finish(prepareService(key, buildContext(state, tableOptions()), undefined)).ports);
});

test.each([
  ['other options', (state: ClusterState) => buildContext(state, tableOptions({ masqueradeAll: true }))],
  [
    'another zone',
    (state: ClusterState) => {
      state.apply([{ kind: 'upsert', resource: 'Node', item: node('n1', { zone: 'a' }) }]);
      return buildContext(state, tableOptions());
    },
  ],
  [
    'another version of the Service',
    (state: ClusterState) => {
      const item = { ...largeService(1000), externalIps: node('n1', { addresses: ['192.0.2.7'] }).addresses };
      state.apply([{ kind: 'upsert', resource: 'Service', item }]);
      return buildContext(state, tableOptions());
    },
  ],
])('with %s nothing of the last build stays', (_, change) => {
  const { state } = countingState(10);
  const before = finish(prepareService(key, buildContext(state, tableOptions()), undefined));
  const context = change(state);
  const after = finish(prepareService(key, context, before));
  const known = new Set(before.ports);
  expect(after.ports.some((port) => known.has(port))).toBe(false);
  expect(after.ports).toEqual(finish(prepareService(key, context, undefined)).ports);
});
