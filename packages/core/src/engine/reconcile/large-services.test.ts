import { expect, test } from 'vitest';
import { buildTable } from '../../model/forwarding/build-table.ts';
import { nodeName } from '../../model/records/keys.ts';
import type { ClusterEvent } from '../../model/state/cluster-event.ts';
import { ClusterState } from '../../model/state/cluster-state.ts';
import { node, service, tableOptions } from '../../testing/builders.ts';
import { largeService, largeSlice } from '../../testing/large-service.ts';
import { replaceAll } from '../../testing/expand-states.ts';
import { cart, cartSlice, cluster, ReconcilerBench } from '../../testing/reconciler-bench.ts';
import { millis } from '../../base/time.ts';
import { LargeServices } from './large-services.ts';

const large = largeService(3000);
const largeEvent: ClusterEvent = { kind: 'upsert', resource: 'Service', item: large };
const sliceEvent = (index: number, endpoints = 2): ClusterEvent => ({
  kind: 'upsert',
  resource: 'EndpointSlice',
  item: largeSlice(index, endpoints),
});
const deletion: ClusterEvent = { kind: 'delete', resource: 'Service', name: large.key };
/** Enough time for every pause of a build. */
const builtBy = 1;

/** Ports of each apply by Service: `cart`, `large 100`, `-large 3000`. */
function applied(bench: ReconcilerBench): readonly string[] {
  return bench.recording.applies.map(({ request: { scope } }) => {
    if (scope.kind === 'full') return 'full';
    const { upserted, removed } = scope.delta;
    const ports = upserted.filter((one) => one.service === large.key).length;
    return [
      ...upserted.filter((one) => one.key === cart).map(() => 'cart'),
      ...(ports > 0 ? [`large ${ports}`] : []),
      ...(removed.length > 0 ? [`-large ${removed.length}`] : []),
    ].join(' and ');
  });
}

/** A bench whose kernel has the large Service without endpoints. */
async function started(): Promise<ReconcilerBench> {
  const bench = new ReconcilerBench();
  await bench.push(cluster);
  await bench.push([largeEvent]);
  await bench.clock.advance(builtBy);
  expect(applied(bench)).toEqual(['full', 'large 3000']);
  return bench;
}

/** Compares what was applied with a full build of the state after all these events. */
function expectTableOf(bench: ReconcilerBench, ...events: readonly ClusterEvent[]): void {
  const state = new ClusterState({ nodeName: nodeName('n1') });
  state.apply([...cluster, ...events]);
  const wanted = buildTable(state, 'all', undefined, tableOptions());
  const table = bench.reconciler.tables().get('IPv4');
  expect(new Map(table?.services)).toEqual(new Map(wanted.services));
}

test('a change of another Service does not wait for the build of a large one', async () => {
  await using bench = await started();
  await bench.push([sliceEvent(0), ...cartSlice('10.244.1.9'), sliceEvent(1)]);
  expect(applied(bench).slice(2)).toEqual(['cart']);
  await bench.clock.advance(builtBy);
  expect(applied(bench).slice(2)).toEqual(['cart', 'large 200']);
  expectTableOf(bench, largeEvent, ...cartSlice('10.244.1.9'), sliceEvent(0), sliceEvent(1));
});

test('slices that arrive before a build begins are built together', async () => {
  await using bench = await started();
  for (let index = 0; index < 30; index++) await bench.push([sliceEvent(index, 50)]);
  await bench.clock.advance(20);
  expect(applied(bench).slice(2)).toEqual(['large 3000']);
  await bench.push([sliceEvent(29, 3)]);
  await bench.clock.advance(builtBy);
  expect(applied(bench).slice(3)).toEqual(['large 100']);
});

test('others that change all the time go first, but not twice in a row', async () => {
  await using bench = await started();
  await bench.push([sliceEvent(0)]);
  for (let round = 0; round < 4; round++) {
    bench.source.push(cartSlice(`10.244.1.${20 + round}`));
    await bench.clock.advance(builtBy);
  }
  const after = applied(bench).slice(2);
  expect(after[0]).toBe('cart');
  expect(after.slice(1, 3)).toContainEqual(expect.stringContaining('large 100'));
});

test('a large Service that is deleted while it is built does not come back', async () => {
  await using bench = await started();
  await bench.push([sliceEvent(0, 50)]);
  await bench.push([deletion]);
  await bench.clock.advance(10);
  expect(applied(bench).at(-1)).toBe('-large 3000');
  expectTableOf(bench, sliceEvent(0, 50));
});

test('a large Service that becomes small while it is built is as it was last', async () => {
  await using bench = await started();
  const small: ClusterEvent = {
    kind: 'upsert',
    resource: 'Service',
    item: { ...large, ports: large.ports.slice(0, 5) },
  };
  await bench.push([sliceEvent(0, 50)]);
  await bench.push([small]);
  expectTableOf(bench, small, sliceEvent(0, 50));
  await bench.clock.advance(10);
  expectTableOf(bench, small, sliceEvent(0, 50));
});

test('a change of everything builds large Services again, too', async () => {
  await using bench = await started();
  const zone: ClusterEvent = { kind: 'upsert', resource: 'Node', item: node('n1', { addresses: ['192.0.2.9'] }) };
  const ranges: ClusterEvent = {
    kind: 'upsert',
    resource: 'Service',
    item: {
      ...large,
      ...service('shop/x', { loadBalancerIps: ['198.51.100.1'], sourceRanges: ['192.0.2.0/24'] }),
      key: large.key,
      clusterIps: large.clusterIps,
      ports: large.ports,
    },
  };
  await bench.push([ranges]);
  await bench.clock.advance(builtBy);
  await bench.push([zone]);
  await bench.clock.advance(10);
  expectTableOf(bench, ranges, zone);
});

test('a change of a large Service waits from the moment at which it was heard of', async () => {
  await using bench = await started();
  await bench.push([sliceEvent(0)]);
  expect(bench.family()?.pendingFor).toBe(0);
  expect(bench.metrics.values.get('kubeproxy_sync_proxy_rules_endpoint_changes_pending')).toBe(1);
  await bench.push(cartSlice('10.244.1.9'));
  expect(bench.metrics.values.get('kubeproxy_sync_proxy_rules_endpoint_changes_pending')).toBe(2);
  await bench.clock.advance(builtBy);
  expect(bench.family()?.pendingFor).toBeUndefined();
  expect(bench.metrics.values.get('kubeproxy_sync_proxy_rules_endpoint_changes_pending')).toBe(0);
});

test('a build pauses after 4,000 units of work, so that the time without a pause does not depend on its size', async () => {
  const state = new ClusterState({ nodeName: nodeName('n1') });
  const slices = Array.from({ length: 50 }, (_, index) => largeSlice(index, 20));
  state.apply(replaceAll({ services: [largeService(5000)], slices, nodes: [node('n1')] }));
  const stop = new AbortController();
  let pauses = 0;
  const clock = { now: () => millis(0), monotonic: () => millis(0), sleep: async () => void pauses++ };
  const built = Promise.withResolvers<void>();
  const options = { ipFamily: 'IPv4', state, tableOptions: () => tableOptions(), clock } as const;
  const services = new LargeServices({ ...options, onReady: built.resolve });
  services.divert({ dirty: { services: new Set([large.key]), everything: false }, triggers: [] });
  const running = services.run(stop.signal);
  await built.promise;
  stop.abort();
  await running;
  const units = 5000 * 4 + 5000 * 20;
  const mostBetweenPauses = 4000 + 20;
  expect(pauses).toBeGreaterThanOrEqual(Math.floor(units / mostBetweenPauses));
});
