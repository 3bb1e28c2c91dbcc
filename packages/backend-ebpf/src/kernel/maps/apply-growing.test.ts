import { diffTables, type ForwardingTable, HostError } from '@switchyard/core';
import { addressNumber, situation, there } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { smallestSizes } from '../../render/layouts.ts';
import { MemoryMachine, StepClock } from '../../testing/index.ts';
import { applyGrowing } from './apply-growing.ts';
import { dumpMaps } from './dump.ts';
import { isLarger, neededSizes } from './map-sizes.ts';
import { ServiceWriter } from './service-writer.ts';

const { signal } = new AbortController();
const tiny = { services: 2, endpoints: 4, slots: 4, frontends: 3, sourceRanges: 1 };

function servicesOf(count: number): ForwardingTable {
  const names = Array.from({ length: count }, (_, index) => index + 1);
  return situation(
    Object.fromEntries(
      names.map((index) => [
        `s${index}`,
        {
          clusterIps: [`10.96.0.${index}`],
          loadBalancerIps: [`198.51.100.${index}`],
          sourceRanges: ['203.0.113.0/24', `10.${index}.0.0/16`],
          endpoints: [there(addressNumber(11, index)), there(addressNumber(12, index))],
        },
      ]),
    ),
  );
}

test.each(['full', 'delta'])('maps that are full grow until all fits: %s', async (way) => {
  const machine = new MemoryMachine();
  const kernel = machine.openKernel('IPv4');
  const { maps } = await kernel.openMaps(tiny, signal);
  const writer = new ServiceWriter(maps, { clock: new StepClock() });
  const [first, all] = [servicesOf(1), servicesOf(40)];
  if (way === 'delta') await applyGrowing({ writer, kernel, table: first, delta: undefined }, signal);
  const delta = way === 'delta' ? diffTables(first, all) : undefined;
  const result = await applyGrowing({ writer, kernel, table: all, delta }, signal);
  expect(result.failed.size).toBe(0);
  expect(result.grow).toBeUndefined();
  const grown = machine.mapsOf('IPv4')!;
  expect(isLarger(writer.sizes, tiny)).toBe(true);
  const machineOfItsOwn = new MemoryMachine();
  const fresh = await machineOfItsOwn.openKernel('IPv4').openMaps(neededSizes(all), signal);
  new ServiceWriter(fresh.maps, { clock: new StepClock() }).applyFull(all);
  expect(dumpMaps(grown)).toBe(dumpMaps(fresh.maps));
  expect(writer.applyFull(all).writes).toBe(0);
});

test('where maps cannot grow, what does not fit fails and all else is written', async () => {
  const sizes = { services: 64, endpoints: 5, slots: 64, frontends: 64, sourceRanges: 64 }; // two endpoints for two Services
  const { maps } = await new MemoryMachine().openKernel('IPv4').openMaps(sizes, signal);
  const growMaps = (): Promise<never> => Promise.reject(new HostError('test.memory', 'no memory'));
  const writer = new ServiceWriter(maps, { clock: new StepClock() });
  const [fits, table] = [servicesOf(2), servicesOf(4)];
  const { failed } = await applyGrowing({ writer, kernel: { growMaps }, table, delta: undefined }, signal);
  expect([...failed.keys()]).toEqual([...table.services.keys()].filter((key) => !fits.services.has(key)));
  for (const { message } of failed.values()) expect(message).toMatch(/endpoints is full.*could not grow: no memory/);
  expect(writer.applyDelta(diffTables(undefined, fits)).writes).toBe(0);
  await expect(
    applyGrowing({ writer, kernel: { growMaps }, table, delta: undefined }, AbortSignal.abort(new Error('enough'))),
  ).rejects.toThrow('enough');
});

test('sizes have room to spare, and are never below the smallest', () => {
  expect(neededSizes(situation({}))).toEqual(smallestSizes);
  const table = servicesOf(200);
  const many = new Map(
    [...table.services].flatMap(([key, service]) =>
      Array.from({ length: 50 }, (_, copy) => [`${key}${copy}` as typeof key, service] as const),
    ),
  );
  expect(neededSizes({ ...table, services: many })).toEqual({
    services: 14_336,
    endpoints: 28_672,
    slots: 65_536,
    frontends: 40_960,
    sourceRanges: 28_672,
  });
});
