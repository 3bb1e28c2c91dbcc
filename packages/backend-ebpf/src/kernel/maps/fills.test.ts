import { diffTables } from '@switchyard/core';
import { ManualClock, service, slice, tableOf } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { smallestSizes } from '../../render/layouts.ts';
import { memoryMaps } from '../../testing/index.ts';
import { ServiceWriter } from './service-writer.ts';

test('a writer reports fills; freed entries count for a second', async () => {
  const clock = new ManualClock();
  const writer = new ServiceWriter(memoryMaps(smallestSizes), { clock });
  const entries = (): Readonly<Record<string, number>> =>
    Object.fromEntries(writer.fills().map((fill) => [fill.map, fill.entries]));
  const before = entries();
  const cart = service('shop/cart', { loadBalancerIps: ['198.51.100.1'], sourceRanges: ['203.0.113.0/24'] });
  const table = tableOf({
    services: [cart],
    slices: [slice('shop/cart', { endpoints: ['10.244.1.1', '10.244.1.2'] })],
  });
  const empty = tableOf({});
  writer.applyFull(table);
  const full = entries();
  writer.applyDelta(diffTables(table, empty));
  const after = entries();
  await clock.advance(2000);
  expect(entries()).toEqual(before);
  const grown = Object.entries(full).map(([map, count]) => [map, count - (before[map] ?? 0)]);
  expect(Object.fromEntries(grown)).toMatchObject({ services: 1, endpoints: 2, source_ranges: 1 });
  expect(full['frontends']).toBe(3); // two, and the guard of the cluster IP
  expect(after).toMatchObject({ services: full['services'], slots: full['slots'], frontends: 0 });
  expect(writer.fills().map(({ capacity }) => capacity)).toEqual([4096, 16_384, 65_536, 4096, 16_384]);
});
