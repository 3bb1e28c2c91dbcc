/*
 * Cost of writing tables to maps, without programs: `node --expose-gc --conditions=@switchyard/source bench/service-writer.ts
 * [memory] [services ...]`. Makes unused maps of the kernel, which end with this process, or maps in memory.
 */
import type { ForwardingTable } from '@switchyard/core';
import { type BpfMap, createMap } from '@switchyard/native';
import { type MapSet, mapShapes } from '../src/index.ts';
import { neededSizes } from '../src/kernel/maps/map-sizes.ts';
import { memoryMaps } from '../src/testing/index.ts';
import { clusterOf } from './cluster.ts';
import { measureWriter } from './measure-writer.ts';

function kernelMaps(table: ForwardingTable): MapSet {
  const maps = Object.entries(mapShapes(neededSizes(table))).map(([name, shape]): [string, BpfMap] => [
    name,
    createMap(shape),
  ]);
  return Object.fromEntries(maps) as unknown as MapSet; // the names of the shapes
}

const isMemory = process.argv.includes('memory');
const sizes = process.argv
  .slice(2)
  .filter((text) => text !== 'memory')
  .map(Number);
for (const services of sizes.length === 0 ? [1000, 10_000, 30_000] : sizes) {
  const open = isMemory ? (table: ForwardingTable): MapSet => memoryMaps(neededSizes(table)) : kernelMaps;
  console.log(measureWriter(open, clusterOf(services, 10), 2000));
}
