import { HostError, noopLogger } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { smallestSizes } from './layouts.ts';
import { OpenMapSet } from './open-map-set.ts';
import { memoryMaps } from './testing/memory-kernel.ts';
import { WireHolder } from './wire-holder.ts';

function unusedWire(clock: ManualClock): WireHolder {
  const maps = new OpenMapSet();
  maps.set(memoryMaps(smallestSizes));
  const run = () => Promise.reject(new HostError('test.run', 'no program runs here'));
  const place = {
    ipFamily: 'IPv4',
    runner: { run },
    logger: noopLogger,
    interfaces: [],
    pinFolder: '/nowhere',
  } as const;
  return new WireHolder({ ...place, clock, maps, isUsed: async () => false });
}

test('a wire that nobody uses wakes nobody, and is followed once it is there', async () => {
  const clock = new ManualClock();
  await using wire = unusedWire(clock);
  const stop = new AbortController();
  const followed = wire.follow(stop.signal);
  await clock.advance(1000);
  expect(clock.sleeping).toBe(0);
  await expect(wire.ensure(AbortSignal.abort(new Error('enough')))).rejects.toThrow('enough'); // made, nothing touched
  await clock.advance(1000);
  expect(clock.sleeping).toBe(1);
  stop.abort();
  await expect(followed).resolves.toBeUndefined();
});

test('who waits for a wire stops waiting when told to', async () => {
  await using wire = unusedWire(new ManualClock());
  const stop = new AbortController();
  const followed = wire.follow(stop.signal);
  stop.abort();
  await expect(followed).resolves.toBeUndefined();
});
