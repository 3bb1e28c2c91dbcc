import type { BpfMap } from '@switchyard/native';
import { type MapName, mapOfSize, type MapSizes, mapShapes, mapSizes } from '../../render/layouts.ts';
import type { MapSet } from '../kernel.ts';

export const mapNames: readonly MapName[] = Object.keys(mapShapes(mapSizes(() => 1))) as MapName[]; // its own keys

export function mapSetOf(open: (name: MapName) => BpfMap): MapSet {
  return Object.fromEntries(mapNames.map((name) => [name, open(name)])) as MapSet; // all names are there
}

export function sizesOf(maps: MapSet): MapSizes {
  return mapSizes((name) => maps[mapOfSize[name]].shape.maxEntries);
}

export function tooSmall(maps: MapSet, sizes: MapSizes): readonly MapName[] {
  const shapes = mapShapes(sizes);
  return mapNames.filter((name) => maps[name].shape.maxEntries < shapes[name].maxEntries);
}

export function copyMap(from: BpfMap, to: BpfMap): void {
  if (from.shape.mmapable === true) {
    to.values().set(from.values());
    return;
  }
  const { keys, values, count } = from.entries();
  to.updateBatch(keys, values, count);
}

/** Closes this process's maps; pinned ones and those that programs use stay. */
export function closeMaps(maps: MapSet): void {
  for (const name of mapNames) maps[name][Symbol.dispose]();
}
