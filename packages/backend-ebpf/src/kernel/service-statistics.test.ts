import type { ServicePortKey } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';
import { MemoryBpfMap } from '@switchyard/native/testing';
import { describe, expect, test } from 'vitest';
import { mapShapes, smallestSizes } from '../render/layouts.ts';
import { ServiceStatistics } from './service-statistics.ts';

const { signal } = new AbortController();
const [cart, shoes] = ['shop/cart:/TCP', 'shop/shoes:/TCP'] as [ServicePortKey, ServicePortKey];
const idle = { connections: 0, drops: { noLocalEndpoint: 0, noEndpoints: 0, sourceRange: 0 } };
const noDrops = idle.drops;

function bench() {
  const statistics = new MemoryBpfMap(mapShapes(smallestSizes).statistics, { cpus: 2 });
  const reader = new ServiceStatistics(new ManualClock());
  const read = (ids: Readonly<Record<ServicePortKey, number>>, known: readonly ServicePortKey[] = []) => {
    const services = Object.entries(ids).map(([key, id]) => ({ key: key as ServicePortKey, id }));
    return reader.read({ statistics: () => statistics, services, isKnown: (key) => known.includes(key) }, signal);
  };
  /** Counters of an id: four numbers for each CPU. */
  const count = (id: number, ...cpus: readonly (readonly number[])[]): void =>
    statistics.update(Uint8Array.of(id, 0, 0, 0), new Uint8Array(BigUint64Array.from(cpus.flat().map(BigInt)).buffer));
  return { statistics, reader, read, count };
}

describe('ServiceStatistics', () => {
  test('CPUs are added up, and each number is where it belongs', async () => {
    const { read, count } = bench();
    count(5, [1, 2, 3, 4], [10, 20, 30, 2 ** 40]);
    expect(await read({ [cart]: 5, [shoes]: 6 })).toEqual(
      new Map([
        [cart, { connections: 11, drops: { noLocalEndpoint: 22, noEndpoints: 33, sourceRange: 2 ** 40 + 4 } }],
        [shoes, idle],
      ]),
    );
  });

  test('a new process goes on from what the kernel has', async () => {
    const { read, count, statistics } = bench();
    count(5, [3, 0, 0, 0], [0, 0, 0, 0]);
    await read({ [cart]: 5 });
    const next = new ServiceStatistics(new ManualClock());
    const services = [{ key: cart, id: 5 }];
    const totals = await next.read({ statistics: () => statistics, services, isKnown: () => false }, signal);
    expect(totals.get(cart)?.connections).toBe(3);
  });

  test('a map that is exchanged for a larger one meanwhile is read on', async () => {
    const clock = new ManualClock();
    const [small, large] = [64, 2048].map(
      (services) => new MemoryBpfMap(mapShapes({ ...smallestSizes, services }).statistics, { cpus: 1 }),
    ) as [MemoryBpfMap, MemoryBpfMap];
    large.update(Uint8Array.of(0xe8, 3, 0, 0), new Uint8Array(BigUint64Array.of(7n, 0n, 0n, 0n).buffer)); // of id 1000
    let statistics = small;
    const services = Array.from({ length: 1000 }, (_, index) => ({
      key: `shop/s${index}` as ServicePortKey,
      id: index + 1,
    }));
    const reading = new ServiceStatistics(clock).read(
      { statistics: () => statistics, services, isKnown: () => true },
      signal,
    );
    small[Symbol.dispose]();
    statistics = large;
    await clock.advance(0);
    expect((await reading).get('shop/s999' as ServicePortKey)?.connections).toBe(7);
  });

  test('an id that has a new owner counts for that one', async () => {
    const { read, count } = bench();
    count(5, [3, 1, 0, 0], [0, 0, 0, 0]);
    await read({ [cart]: 5 });
    count(5, [0, 0, 0, 0], [2, 0, 0, 0]);
    expect(await read({ [shoes]: 5 })).toEqual(new Map([[shoes, { connections: 2, drops: noDrops }]]));
  });

  test('a service that gets another id keeps its totals', async () => {
    const { read, count } = bench();
    count(5, [3, 0, 0, 0], [0, 0, 0, 0]);
    await read({ [cart]: 5 });
    count(6, [1, 0, 0, 0], [0, 0, 0, 0]);
    expect((await read({ [cart]: 6 })).get(cart)?.connections).toBe(4);
  });

  test('a deleted service is forgotten, one that could not be written is not', async () => {
    const { read, count } = bench();
    count(5, [3, 0, 0, 0], [0, 0, 0, 0]);
    count(6, [4, 0, 0, 0], [0, 0, 0, 0]);
    await read({ [cart]: 5, [shoes]: 6 });
    await read({}, [shoes]);
    expect(await read({ [shoes]: 7 })).toEqual(new Map([[shoes, { connections: 4, drops: noDrops }]]));
    expect((await read({ [cart]: 8 })).get(cart)?.connections).toBe(0);
  });
});
