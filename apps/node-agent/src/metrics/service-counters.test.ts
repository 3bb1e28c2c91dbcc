import { millis, seconds, serviceKey, type ServicePortKey, servicePortKey } from '@switchyard/core';
import type { ServiceCounters } from '@switchyard/core/engine';
import { ManualClock } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { BoundedCounters } from './service-metrics.ts';

const { signal } = new AbortController();

const key = (name: string): ServicePortKey => servicePortKey(serviceKey('shop', name), 'http', 'TCP');
const counted = (connections: number, noEndpoints = 0): ServiceCounters => ({
  connections,
  drops: { noLocalEndpoint: 0, noEndpoints, sourceRange: 0 },
});

/** A kernel whose counters are `now`, and that counts how often it is read. */
function setUp(limit: number) {
  const clock = new ManualClock();
  const kernel = { now: {} as Readonly<Record<string, number | ServiceCounters>>, reads: 0 };
  const readKernel = async () => {
    kernel.reads++;
    await clock.sleep(millis(40), signal);
    return new Map(
      Object.entries(kernel.now).map(([name, one]) => [key(name), typeof one === 'number' ? counted(one) : one]),
    );
  };
  const backend = { ipFamily: 'IPv4', observers: { counters: readKernel } } as const;
  const counters = new BoundedCounters(backend, { clock, limit });
  const read = async (): Promise<{ readonly shown: string[]; readonly omitted: number }> => {
    const reading = counters.read(signal);
    await clock.advance(millis(40));
    const { services, omitted } = await reading;
    return { shown: [...services.keys()].map((one) => one.slice('shop/'.length, -':http/TCP'.length)).sort(), omitted };
  };
  return { clock, kernel, counters, read };
}

describe('which services are shown', () => {
  test.each<readonly [string, number, Readonly<Record<string, number | ServiceCounters>>, readonly string[], number]>([
    ['all of them while there is room', 3, { c: 1, a: 0, b: 2 }, ['a', 'b', 'c'], 0],
    ['the busiest', 2, { a: 1, b: 5, c: 3 }, ['b', 'c'], 1],
    ['of the idle ones any', 2, { c: 0, b: 0, a: 0 }, ['b', 'c'], 1],
    ['one that only drops before an idle one', 1, { a: 0, b: counted(0, 4) }, ['b'], 1],
    ['none at a limit of 0', 0, { a: 1 }, [], 1],
    ['none of none', 2, {}, [], 0],
  ])('%s', async (_, limit, now, shown, omitted) => {
    const { kernel, read } = setUp(limit);
    kernel.now = now;
    expect(await read()).toEqual({ shown, omitted });
  });

  test('one that was shown and has counted keeps its place when another becomes busier', async () => {
    const { clock, kernel, read } = setUp(1);
    kernel.now = { a: 1, b: 0 };
    expect((await read()).shown).toEqual(['a']);
    await clock.advance(seconds(5));
    kernel.now = { a: 1, b: 1000 };
    expect((await read()).shown).toEqual(['a']);
  });

  test('one that was shown and is idle makes room', async () => {
    const { clock, kernel, read } = setUp(1);
    kernel.now = { a: 0, b: 0 };
    expect((await read()).shown).toEqual(['a']);
    await clock.advance(seconds(5));
    kernel.now = { a: 0, b: 1 };
    expect((await read()).shown).toEqual(['b']);
  });

  test('an idle one that was shown stays, independent of the order in the kernel', async () => {
    const { clock, kernel, read } = setUp(1);
    kernel.now = { a: 0, b: 0 };
    expect((await read()).shown).toEqual(['a']);
    await clock.advance(seconds(5));
    kernel.now = { b: 0, a: 0 };
    expect((await read()).shown).toEqual(['a']);
  });

  test('a deleted one makes room', async () => {
    const { clock, kernel, read } = setUp(1);
    kernel.now = { a: 7, b: 1 };
    expect((await read()).shown).toEqual(['a']);
    await clock.advance(seconds(5));
    kernel.now = { b: 1 };
    expect(await read()).toEqual({ shown: ['b'], omitted: 0 });
  });
});

describe('how often the kernel is read', () => {
  test('once for all who ask meanwhile', async () => {
    const { kernel, read } = setUp(10);
    kernel.now = { a: 1 };
    await Promise.all([read(), read(), read()]);
    expect(kernel.reads).toBe(1);
  });

  test('not again before the reading is five seconds old', async () => {
    const { clock, kernel, read } = setUp(10);
    await read();
    await clock.advance(millis(4900));
    await read();
    expect(kernel.reads).toBe(1);
    await clock.advance(millis(100));
    await read();
    expect(kernel.reads).toBe(2);
  });

  test('never without a request', async () => {
    const { clock, kernel } = setUp(10);
    await clock.advance(seconds(60));
    expect(kernel.reads).toBe(0);
  });
});
