import { type RunOutcome } from '@switchyard/core/engine';
import { seconds } from '@switchyard/core';
import { ManualClock, settle } from '@switchyard/core/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { KeyedQueue } from './keyed-queue.ts';

let clock: ManualClock;
let queue: KeyedQueue<string>;
let stop: AbortController;
let running: Promise<void>;
/** `+key` when a run begins, `-key` when it ends. */
let seen: string[];
/** Runs in flight, to be ended by the test. */
let open: Map<string, (outcome: RunOutcome) => void>;
/** Outcome of a run of a key, unless the test ends it. */
let outcomes: Map<string, RunOutcome>;

const end = async (key: string, status: RunOutcome['status'] = 'done'): Promise<void> => {
  open.get(key)?.({ status });
  await settle();
};
const add = async (...keys: readonly string[]): Promise<void> => {
  for (const key of keys) queue.add(key);
  await settle();
};

beforeEach(() => {
  clock = new ManualClock();
  seen = [];
  open = new Map();
  outcomes = new Map();
  stop = new AbortController();
  queue = new KeyedQueue({
    clock,
    workers: 2,
    retry: { first: seconds(1), max: seconds(8) },
    run: async (key) => {
      seen.push(`+${key}`);
      const { promise, resolve } = Promise.withResolvers<RunOutcome>();
      open.set(key, resolve);
      const outcome = outcomes.get(key) ?? (await promise);
      open.delete(key);
      seen.push(`-${key}`);
      return outcome;
    },
  });
  running = queue.run(stop.signal);
});

afterEach(async () => {
  stop.abort();
  for (const key of open.keys()) await end(key);
  await running;
  expect(clock.sleeping).toBe(0);
});

describe('keys', () => {
  test('run at the same time, no more than there are workers, in the order in which they came', async () => {
    await add('a', 'b', 'c', 'd');
    expect(seen).toEqual(['+a', '+b']);
    await end('b');
    expect(seen).toEqual(['+a', '+b', '-b', '+c']);
  });

  test('that come many times before their turn run once', async () => {
    await add('a', 'b', 'c', 'c', 'c');
    await end('a');
    await end('c');
    expect(seen).toEqual(['+a', '+b', '-a', '+c', '-c']);
  });

  test('that come while they run, run once more afterwards, never twice at once', async () => {
    await add('a');
    await add('a', 'a');
    expect(seen).toEqual(['+a']);
    await end('a');
    expect(seen).toEqual(['+a', '-a', '+a']);
    await end('a');
    expect(queue.isIdle).toBe(true);
  });
});

describe('a key that fails', () => {
  beforeEach(() => void outcomes.set('bad', { status: 'retry' }));
  const runsOf = (key: string): number => seen.filter((one) => one === `+${key}`).length;

  test('comes again after 1, 2, 4, 8, 8 s, and delays no other', async () => {
    await add('bad');
    for (const [wait, runs] of [
      [999, 1],
      [1, 2],
      [1999, 2],
      [1, 3],
      [4000, 4],
      [8000, 5],
      [8000, 6],
    ] as const) {
      await clock.advance(wait);
      expect(runsOf('bad')).toBe(runs);
    }
    await add('good');
    await end('good');
    expect(runsOf('good')).toBe(1);
  });

  test('comes at once when it is added, and its back-off goes on from there', async () => {
    await add('bad');
    await add('bad');
    expect(runsOf('bad')).toBe(2);
    await clock.advance(1999);
    expect(runsOf('bad')).toBe(2);
    await clock.advance(1);
    expect(runsOf('bad')).toBe(3);
  });

  test('starts over with its back-off once it went well', async () => {
    await add('bad');
    await clock.advance(3000);
    outcomes.set('bad', { status: 'done' });
    await clock.advance(4000);
    outcomes.set('bad', { status: 'retry' });
    await add('bad');
    const before = runsOf('bad');
    await clock.advance(1000);
    expect(runsOf('bad')).toBe(before + 1);
  });

  test('starts over when what it failed of is over', async () => {
    await add('bad');
    await clock.advance(7000);
    queue.startOver('bad');
    await settle();
    const before = runsOf('bad');
    await clock.advance(999);
    expect(runsOf('bad')).toBe(before);
    await clock.advance(1);
    expect(runsOf('bad')).toBe(before + 1);
  });

  test('is not hurried by a touch, neither while it waits nor while it fails', async () => {
    await add('bad');
    queue.touch('bad');
    await settle();
    expect(runsOf('bad')).toBe(1);
    await add('slow');
    queue.touch('slow');
    await end('slow', 'retry');
    expect(runsOf('slow')).toBe(1);
    await clock.advance(1000);
    expect([runsOf('bad'), runsOf('slow')]).toEqual([2, 2]);
  });
});

test('a touch during a run that goes well is another run', async () => {
  await add('a');
  queue.touch('a');
  await end('a');
  expect(seen).toEqual(['+a', '-a', '+a']);
});

test('the abort waits for the runs in flight and starts no other', async () => {
  await add('a', 'b', 'c');
  stop.abort();
  await settle();
  await end('a');
  await end('b');
  await running;
  expect(seen).toEqual(['+a', '+b', '-a', '-b']);
});

test('a run that rejects ends the queue with its error', async () => {
  const broken = new Error('broken');
  const own = new KeyedQueue<string>({
    clock,
    workers: 1,
    retry: { first: seconds(1), max: seconds(1) },
    run: () => Promise.reject(broken),
  });
  own.add('a');
  await expect(own.run(new AbortController().signal)).rejects.toBe(broken);
});
