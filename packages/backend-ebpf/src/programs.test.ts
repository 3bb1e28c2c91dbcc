import { diffTables, type ForwardingTable, HostError } from '@switchyard/core';
import { addressNumber, situation, there } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { dumpMaps } from './maps/dump.ts';
import { OpenMapSet } from './open-map-set.ts';
import { Programs } from './programs.ts';
import { MemoryMachine, StepClock } from './testing/index.ts';

const { signal } = new AbortController();

/** One Service with that many endpoints; 16,384 are the first that do not fit. */
function tableOf(count: number): ForwardingTable {
  const endpoints = Array.from({ length: count }, (_, index) => there(addressNumber(11, index + 1)));
  return situation({ cart: { endpoints } });
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
      wire: () => ({ ensure }),
      clock,
      noteGone: () => undefined,
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
