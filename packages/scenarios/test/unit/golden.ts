import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../golden/', import.meta.url));
/** `UPDATE_GOLDENS=1` writes the golden files anew; the diff is for the reviewer. */
const isUpdate = process.env['UPDATE_GOLDENS'] !== undefined;

/** The text of a golden file, after putting `found` there if goldens are being updated. A missing file is empty. */
export function golden(name: string, found: string): string {
  const file = join(folder, name);
  if (isUpdate) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, found);
  }
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

/** Names of the golden files of one backend. */
export function goldensOf(backend: string): readonly string[] {
  return existsSync(join(folder, backend))
    ? readdirSync(join(folder, backend)).map((name) => `${backend}/${name}`)
    : [];
}
