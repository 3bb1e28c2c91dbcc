import { join } from 'node:path';
import { isBpffs, listPins, openPinnedLink } from '@switchyard/native';

/** Ids of the programs in all links that are pinned below our folder in a bpffs: of both families, and of all versions. */
export function ourPrograms(bpffs: string): ReadonlySet<number> {
  const root = join(bpffs, 'switchyard');
  const folders = isBpffs(bpffs) ? listPins(root) : [];
  return new Set(folders.flatMap((folder) => programsIn(join(root, folder, 'links'))));
}

function programsIn(folder: string): readonly number[] {
  return listPins(folder).flatMap((name) => {
    using link = openPinnedLink(join(folder, name));
    return link === undefined ? [] : [link.programId];
  });
}
