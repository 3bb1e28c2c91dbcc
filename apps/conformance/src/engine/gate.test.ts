import { abortable } from '@switchyard/core';
import { expect, test } from 'vitest';
import { Gate } from './error-pace.ts';

const goOn = new AbortController().signal;

test.each([
  { title: 'as many as fit', limit: 10, sizes: [4, 4, 4, 4], most: 8 },
  { title: 'one that needs more than all of it goes alone', limit: 10, sizes: [3, 50, 3], most: 10 },
  { title: 'one after the other where there is a single place', limit: 1, sizes: [1, 1, 1, 1, 1], most: 1 },
])('$title', async ({ limit, sizes, most }) => {
  const gate = new Gate(limit);
  let now = 0;
  let highest = 0;
  const order: number[] = [];
  const done = sizes.map((size, index) =>
    gate.run(
      size,
      async () => {
        now += Math.min(size, limit);
        highest = Math.max(highest, now);
        order.push(index);
        for (let turn = 0; turn < 5; turn++) await Promise.resolve();
        now -= Math.min(size, limit);
        return index;
      },
      goOn,
    ),
  );
  expect(await Promise.all(done)).toEqual(sizes.map((_, index) => index));
  expect(highest).toBe(most);
  expect(order, 'first come, first served').toEqual(sizes.map((_, index) => index));
});

test('work that fails gives its places back', async () => {
  const gate = new Gate(1);
  await expect(gate.run(1, () => Promise.reject(new Error('lost')), goOn)).rejects.toThrow('lost');
  expect(await gate.run(1, () => Promise.resolve('free'), goOn)).toBe('free');
});

test('work that waits when the signal aborts is never begun', async () => {
  const gate = new Gate(2);
  const stop = new AbortController();
  let begun = 0;
  const untilStopped = (): Promise<never> => {
    begun += 1;
    return abortable(new Promise(() => undefined), stop.signal);
  };
  const all = Array.from({ length: 6 }, () => gate.run(1, untilStopped, stop.signal));
  await Promise.resolve();
  stop.abort(new Error('enough'));
  const ended = await Promise.allSettled(all);
  expect(ended.map((one) => (one.status === 'rejected' ? String(one.reason) : one.status))).toEqual(
    Array.from({ length: 6 }, () => 'Error: enough'),
  );
  expect(begun).toBe(2);
  await expect(gate.run(1, untilStopped, stop.signal)).rejects.toThrow('enough');
  expect(begun).toBe(2);
});
