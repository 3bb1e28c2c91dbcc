import { cpSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../workspace.ts';
import { linkedPaths, siteFile } from './pages.ts';

/** Copies the files of the checkout that pages link to. */
export function copyFiles(outFolder: string): void {
  for (const file of linkedPaths().files) {
    const to = join(outFolder, siteFile(file));
    mkdirSync(dirname(to), { recursive: true });
    cpSync(join(root, file), to);
  }
}
