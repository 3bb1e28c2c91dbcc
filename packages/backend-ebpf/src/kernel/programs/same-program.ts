import { type BpfProgram, openMapById, openProgramById } from '@switchyard/native';

/**
 * Whether the program with this id does the same as one that was just loaded: same instructions, same maps, same constants. Constants
 * are in a map of their own, one for each load.
 */
export function isSameProgram(id: number, wanted: BpfProgram): boolean {
  using found = openProgramById(id);
  if (found === undefined) return false;
  if (found.id === wanted.id) return true;
  if (found.tag !== wanted.tag || found.mapIds.length !== wanted.mapIds.length) return false;
  const common = new Set(found.mapIds.filter((one) => wanted.mapIds.includes(one)));
  const constantsOf = (program: BpfProgram): string =>
    program.mapIds
      .filter((one) => !common.has(one))
      .map(contentOf)
      .sort()
      .join(' ');
  return constantsOf(found) === constantsOf(wanted);
}

/** A text that only maps of constants with the same content share. */
function contentOf(mapId: number): string {
  using map = openMapById(mapId);
  const isConstants = map !== undefined && map.shape.type === 'array' && map.shape.maxEntries === 1;
  const value = isConstants && map.shape.name.endsWith('.rodata') ? map.lookup(new Uint8Array(4)) : undefined;
  return value === undefined ? `map ${mapId}` : Buffer.from(value).toString('hex');
}
