import { expect, test } from 'vitest';
import type { ClusterEvent } from '../../model/state/cluster-event.ts';
import { slice } from '../../testing/builders.ts';
import { cartSlice, cluster, hang, ReconcilerBench } from '../../testing/reconciler-bench.ts';

/** The events, at a version. */
const at = (resourceVersion: number, events: readonly ClusterEvent[]): readonly ClusterEvent[] =>
  events.map((event) => ({ ...event, resourceVersion }));
const foreign: ClusterEvent = {
  kind: 'upsert',
  resource: 'EndpointSlice',
  item: slice('other/none', { name: 'none-1' }),
};

test('the version of EndpointSlices follows what the kernel has, not what was read', async () => {
  const applying = Promise.withResolvers<void>();
  const during = ({ table }: { table: { generation: number } }) =>
    table.generation === 2 ? applying.promise : Promise.resolve();
  await using bench = new ReconcilerBench({ backend: { during } });
  const version = () => bench.family()?.slicesVersion;
  expect(version()).toBe(0);
  await bench.push(at(10, cluster));
  expect(version()).toBe(10);
  await bench.push(at(11, cartSlice('10.244.1.3')));
  expect(version()).toBe(10);
  await bench.push(at(12, cartSlice('10.244.1.4')));
  applying.resolve();
  await bench.clock.advance(0);
  expect(version()).toBe(12);
});

test('a failed apply does not raise it, and the next one does', async () => {
  await using bench = new ReconcilerBench({ faults: [undefined, { kind: 'refused' }] });
  await bench.push(at(10, cluster));
  await bench.push(at(11, cartSlice('10.244.1.3')));
  expect(bench.family()?.slicesVersion).toBe(10);
  await bench.clock.advance(1000);
  expect(bench.family()?.slicesVersion).toBe(11);
});

test('a change without effect raises it, and not while an earlier change waits', async () => {
  const during = ({ table }: { table: { generation: number } }, signal: AbortSignal) =>
    table.generation === 2 ? hang(signal) : Promise.resolve();
  await using bench = new ReconcilerBench({ backend: { during } });
  await bench.push(at(10, cluster));
  await bench.push(at(11, [foreign]));
  expect(bench.family()?.slicesVersion).toBe(11);
  await bench.push(at(12, cartSlice('10.244.1.3')));
  await bench.push(at(13, [foreign]));
  expect(bench.family()?.slicesVersion).toBe(11);
});

test('a list may be older than what was known, after etcd was restored', async () => {
  await using bench = new ReconcilerBench();
  await bench.push(at(10, cluster));
  await bench.push(at(7, cluster));
  expect(bench.family()?.slicesVersion).toBe(7);
});
