import { type BpfProgram, openMapById, openProgramById } from '@switchyard/native';

/** Same instructions, maps and constants. Each load puts the constants into a new map. */
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

/** Text of a map's content for constants, otherwise of its id. */
function contentOf(mapId: number): string {
  using map = openMapById(mapId);
  const isConstants = map !== undefined && map.shape.type === 'array' && map.shape.maxEntries === 1;
  const value = isConstants && map.shape.name.endsWith('.rodata') ? map.lookup(new Uint8Array(4)) : undefined;
  return value === undefined ? `map ${mapId}` : Buffer.from(value).toString('hex');
}
