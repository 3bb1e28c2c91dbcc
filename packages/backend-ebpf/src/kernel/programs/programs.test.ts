import { diffTables, type ForwardingTable, HostError } from '@switchyard/core';
import { addressNumber, situation, there } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import type { EbpfKernel } from '../kernel.ts';
import { sizesOf } from './map-sets.ts';
import { dumpMaps } from '../maps/dump.ts';
import { isLarger } from '../maps/map-sizes.ts';
import { OpenMapSet } from '../open-map-set.ts';
import { Programs } from './programs.ts';
import { MemoryMachine, StepClock } from '../../testing/index.ts';

const { signal } = new AbortController();
const noteGone = (): void => undefined;

/** One Service with that many endpoints; 16,384 are the first that do not fit. */
function tableOf(count: number, others: Parameters<typeof situation>[0] = {}): ForwardingTable {
  const endpoints = Array.from({ length: count }, (_, index) => there(addressNumber(11, index + 1)));
  return situation({ cart: { endpoints }, ...others });
}

test('a wire that fails while maps grow leaves sockets served, and the next apply goes on', async () => {
  const machine = new MemoryMachine();
  const clock = new StepClock();
  let failure: HostError | undefined;
  const ensure = (): Promise<number> => (failure === undefined ? Promise.resolve(0) : Promise.reject(failure));
  const open = (on: MemoryMachine): Programs =>
    new Programs({
      kernel: on.openKernel('IPv4'),
      maps: new OpenMapSet(),
      settings: [],
      wire: { isUsed: async () => true, ensure },
      clock,
      noteGone,
    });
  const programs = open(machine);
  const [few, many] = [tableOf(1), tableOf(20_000)];
  await programs.applyFull(few, undefined, signal);
  failure = new HostError('test.wire', 'no device');
  await expect(programs.applyDelta(many, diffTables(few, many), signal)).rejects.toBe(failure);
  const other = new MemoryMachine();
  failure = undefined;
  await open(other).applyFull(many, undefined, signal);
  const wanted = dumpMaps(other.mapsOf('IPv4')!);
  expect(dumpMaps(machine.mapsOf('IPv4')!)).toBe(wanted);
  expect(await programs.applyFull(few, undefined, signal)).toMatchObject({ failed: new Map() });
});

test('a process that finds maps that are too small, and no memory for larger ones, serves what fits', async () => {
  const machine = new MemoryMachine();
  const open = (growMaps?: EbpfKernel['growMaps']): Programs => {
    const kernel = machine.openKernel('IPv4');
    if (growMaps !== undefined) kernel.growMaps = growMaps;
    const wire = { isUsed: async () => false, ensure: async () => 0 };
    return new Programs({ kernel, maps: new OpenMapSet(), settings: [], wire, clock: new StepClock(), noteGone });
  };
  await open().applyFull(tableOf(1), undefined, signal);
  const none = new HostError('test.memory', 'no memory');
  const growing = open(async (sizes) => {
    const maps = machine.mapsOf('IPv4')!;
    return isLarger(sizes, sizesOf(maps)) ? Promise.reject(none) : maps;
  });
  const other = { clusterIps: ['10.96.0.11'], endpoints: [there('10.244.2.1')] };
  const { failed } = await growing.applyFull(tableOf(20_000, { other }), undefined, signal);
  expect([...failed.keys()]).toEqual(['shop/cart:/TCP']);
  expect(dumpMaps(machine.mapsOf('IPv4')!)).toContain('10.96.0.11');
});
