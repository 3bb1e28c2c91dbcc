import { noopLogger, parseCidr } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { smallestSizes } from '../../render/layouts.ts';
import { OpenMapSet } from '../open-map-set.ts';
import { memoryMaps } from '../../testing/memory-kernel.ts';
import type { Network } from './devices.ts';
import { WirePath, type WirePathOptions } from './wire-path.ts';

function unusedWire(clock: ManualClock, more: Partial<WirePathOptions> = {}): WirePath {
  const maps = new OpenMapSet();
  maps.set(memoryMaps(smallestSizes));
  const place = {
    ipFamily: 'IPv4',
    logger: noopLogger,
    interfaces: [],
    pinFolder: '/nowhere',
  } as const;
  return new WirePath({ ...place, clock, maps, isUsed: async () => false, ...more });
}

test('an unused wire does not wake up, and is followed once it is used', async () => {
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

test('waiting for the first use ends when it is aborted', async () => {
  await using wire = unusedWire(new ManualClock());
  const stop = new AbortController();
  const followed = wire.follow(stop.signal);
  stop.abort();
  await expect(followed).resolves.toBeUndefined();
});

test('rules are needed from the first bridge on that a program cannot serve, also when it has gone', async () => {
  const one = { isLoopback: false, isUp: true, master: 0, hardwareAddress: '' };
  const bridged: Network = {
    devices: [
      { ...one, index: 2, name: 'br1', kind: 'bridge' },
      { ...one, index: 3, name: 'eth1', kind: '', master: 2 },
    ],
    addresses: [],
    defaultDevice: undefined,
  };
  let network: Network = { ...bridged, devices: [] };
  await using wire = unusedWire(new ManualClock(), { read: () => network });
  const detector = { kind: 'cidr', cidr: parseCidr('10.244.0.0/16') } as const;
  expect(await wire.needsRules(detector)).toBe(false);
  network = bridged;
  expect(await wire.needsRules(detector)).toBe(true);
  network = { ...bridged, devices: [] };
  expect(await wire.needsRules(detector)).toBe(true);
});
