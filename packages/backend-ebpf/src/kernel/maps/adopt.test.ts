import type { ForwardingTable } from '@switchyard/core';
import { here, seededRandom, situation, there } from '@switchyard/core/testing';
import type { BpfMap } from '@switchyard/native';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { MapSet } from '../kernel.ts';
import { type MapName, smallestSizes } from '../../render/layouts.ts';
import { MemoryMachine, memoryMaps, StepClock } from '../../testing/index.ts';
import { applyGrowing } from './apply-growing.ts';
import { dumpMaps } from './dump.ts';
import { ServiceWriter } from './service-writer.ts';

const { signal } = new AbortController();

const table = situation(
  {
    cart: { clusterIps: ['10.96.0.1'], affinitySeconds: 10, endpoints: [here('10.244.1.1'), there('10.244.2.1')] },
    shop: {
      clusterIps: ['10.96.0.2'],
      ports: [{ port: 80, nodePort: 30080 }],
      loadBalancerIps: ['198.51.100.1'],
      sourceRanges: ['203.0.113.0/24', '0.0.0.0/0'],
      external: 'Local',
      endpoints: [here('10.244.1.2'), there('10.244.2.1')],
    },
    empty: { clusterIps: ['10.96.0.3'], endpoints: [] },
  },
  { serviceCidrs: ['10.96.0.0/16'] },
);

test('a new process makes maps with any bytes equal to the table', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string(), fc.integer({ min: 1, max: 40 }), async (seed, count) => {
      const random = seededRandom(seed);
      const machine = new MemoryMachine();
      const kernel = machine.openKernel('IPv4');
      const { maps } = await kernel.openMaps(smallestSizes, signal);
      new ServiceWriter(maps, { clock: new StepClock() }).applyFull(table);
      for (let blow = 0; blow < count; blow++) strike(maps, random);
      dumpMaps(maps); // any bytes can be dumped
      await expectHealed(machine, table);
    }),
    { numRuns: 30 },
  );
}, 60_000);

async function expectHealed(machine: MemoryMachine, wanted: ForwardingTable): Promise<void> {
  const kernel = machine.openKernel('IPv4');
  const writer = new ServiceWriter(machine.mapsOf('IPv4')!, { clock: new StepClock() });
  const result = await applyGrowing({ writer, kernel, table: wanted, delta: undefined }, signal);
  expect([...result.failed.values()]).toEqual([]);
  expect(dumpMaps(machine.mapsOf('IPv4')!)).toBe(dumpOf(wanted));
  expect(writer.applyFull(wanted).writes).toBe(0);
  expect(new ServiceWriter(machine.mapsOf('IPv4')!, { clock: new StepClock() }).applyFull(wanted).writes).toBe(0);
}

function dumpOf(wanted: ForwardingTable): string {
  const maps = memoryMaps(smallestSizes);
  new ServiceWriter(maps, { clock: new StepClock() }).applyFull(wanted);
  return dumpMaps(maps);
}

const mapNames: readonly MapName[] = ['frontends', 'services', 'endpoints', 'slots', 'source_ranges'];

/** Some bytes of some map, near those in use, or far away. */
function strike(maps: MapSet, random: () => number): void {
  const below = (limit: number): number => Math.floor(random() * limit);
  const map: BpfMap = maps[mapNames[below(mapNames.length)]!];
  if (map.shape.mmapable === true) {
    const memory = map.values();
    const at = below(random() < 0.9 ? 256 : memory.length);
    for (let byte = at; byte < Math.min(at + below(16), memory.length); byte++) {
      memory[byte] = random() < 0.5 ? below(4) : below(256);
    }
    return;
  }
  const { keySize, valueSize } = map.shape;
  const { count, keys } = map.entries();
  const chosen = below(Math.max(1, count)) * keySize;
  const key =
    count > 0 && random() < 0.7 ? keys.slice(chosen, chosen + keySize) : new Uint8Array(keySize).map(() => below(256));
  if (map.shape.type === 'lpmTrie' && random() < 0.5) key[4] = below(4);
  if (map.shape.type === 'lpmTrie') key.set([below(161), 0, 0, 0]);
  if (random() < 0.3) map.delete(key);
  else
    map.update(
      key,
      new Uint8Array(valueSize).map(() => (random() < 0.5 ? below(4) : below(256))),
    );
}
