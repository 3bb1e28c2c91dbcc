import { millis } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';
import type { LoadResult } from '@switchyard/lab';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { KernelShortage } from './kernel-shortage.ts';
import { MachineWatch } from './machine-watch.ts';

const { signal } = new AbortController();
let clock: ManualClock;
let watch: MachineWatch;
let send: (scheduledAt: number, doneAt: number, outcome?: LoadResult['outcome']) => Promise<void>;
let end: () => void;
let starts: number;
/** Text of all files with the kernel's counters. */
let softnet: string;

/** A load whose results come from the test. */
beforeEach(() => {
  clock = new ManualClock(1_000_000);
  starts = 0;
  softnet = '';
  watch = new MachineWatch(
    () => {
      starts++;
      let queue = Promise.withResolvers<LoadResult | undefined>();
      const waiting: Promise<LoadResult | undefined>[] = [queue.promise];
      const push = (one: LoadResult | undefined): void => {
        queue.resolve(one);
        queue = Promise.withResolvers();
        waiting.push(queue.promise);
      };
      send = async (scheduledAt, doneAt, outcome = 'answered') => {
        const times = { scheduledAt: millis(scheduledAt), sentAt: millis(scheduledAt), doneAt: millis(doneAt) };
        push({ sequence: 0, ...times, outcome, answeredBy: undefined, httpStatus: undefined });
        await new Promise((resolve) => setImmediate(resolve));
      };
      end = () => push(undefined);
      return {
        async *[Symbol.asyncIterator]() {
          for (;;) {
            const one = await waiting.shift();
            if (one === undefined) return;
            yield one;
          }
        },
        [Symbol.asyncDispose]: async () => end(),
      };
    },
    clock,
    new KernelShortage(() => softnet),
  );
});
afterEach(() => watch[Symbol.asyncDispose]());

const slowestOf = async (...given: Parameters<MachineWatch['between']>): Promise<number> =>
  (await watch.between(...given)).slowest;

test('knows the slowest request that was under way between two times', async () => {
  await send(100, 700);
  await send(800, 850);
  await send(1000, 1400);
  await send(2000, 2003);
  const slowest = (from: number, to: number) => slowestOf(millis(from), millis(to), signal);
  expect(await slowest(650, 900)).toBe(600);
  expect(await slowest(750, 1200)).toBe(400);
  expect(await slowest(750, 900)).toBe(50);
  expect(await slowest(1500, 1900)).toBe(0);
});

test('a request without an answer took its time limit', async () => {
  await send(100, 200, 'refused');
  await send(300, 302);
  expect(await slowestOf(millis(100), millis(250), signal)).toBe(1500);
});

test('waits for the request after the time asked about; without one the wait is the answer', async () => {
  await send(100, 102);
  const slowest = slowestOf(millis(100), millis(150), signal);
  await clock.advance(50);
  await send(200, 201);
  await clock.advance(50);
  expect(await slowest).toBe(2);
  const never = slowestOf(clock.now(), clock.now(), signal);
  await clock.advance(3000);
  expect(await never).toBeGreaterThan(2500);
});

test('knows what was short while the requests were under way', async () => {
  await send(1_000_000, 1_000_002);
  await clock.advance(1000);
  softnet = '00000001 00000007 00000000\n';
  await send(1_001_000, 1_001_002);
  const { shortage } = await watch.between(millis(1_000_100), millis(1_000_900), signal);
  expect(shortage).toBe('a queue of received packets was full (net.core.netdev_max_backlog)');
});

test('knows what was short since the last reading, a moment before', async () => {
  await send(1_000_000, 1_000_002);
  softnet = '00000001 00000007 00000000\n';
  await clock.advance(100);
  await send(1_000_100, 1_000_102);
  const { shortage } = await watch.between(millis(1_000_000), millis(1_000_090), signal);
  expect(shortage).toBe('a queue of received packets was full (net.core.netdev_max_backlog)');
});

test('begins another load when one ends', async () => {
  await send(100, 102);
  end();
  await new Promise((resolve) => setImmediate(resolve));
  expect(starts).toBe(2);
  await send(300, 309);
  await send(400, 401);
  expect(await slowestOf(millis(300), millis(350), signal)).toBe(9);
});
