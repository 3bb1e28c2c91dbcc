import type { BpfMap } from '@switchyard/native';
import { type MapName, mapOfSize, type MapSizes, mapShapes, mapSizes } from '../../render/layouts.ts';
import type { MapSet } from '../kernel.ts';

/** All maps' names. */
export const mapNames: readonly MapName[] = Object.keys(mapShapes(mapSizes(() => 1))) as MapName[]; // its own keys

/** A set out of one map for each name. */
export function mapSetOf(open: (name: MapName) => BpfMap): MapSet {
  return Object.fromEntries(mapNames.map((name) => [name, open(name)])) as MapSet; // all names are there
}

/** The sizes that a set has. */
export function sizesOf(maps: MapSet): MapSizes {
  return mapSizes((name) => maps[mapOfSize[name]].shape.maxEntries);
}

/** Which maps have fewer entries than they are to have. */
export function tooSmall(maps: MapSet, sizes: MapSizes): readonly MapName[] {
  const shapes = mapShapes(sizes);
  return mapNames.filter((name) => maps[name].shape.maxEntries < shapes[name].maxEntries);
}

/** Copies what is in a map to a larger one of the same kind. */
export function copyMap(from: BpfMap, to: BpfMap): void {
  if (from.shape.mmapable === true) {
    to.values().set(from.values());
    return;
  }
  const { keys, values, count } = from.entries();
  to.updateBatch(keys, values, count);
}

/** Closes what this process has open; what is pinned or used by programs stays. */
export function closeMaps(maps: MapSet): void {
  for (const name of mapNames) maps[name][Symbol.dispose]();
}
