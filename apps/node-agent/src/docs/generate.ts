import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeWhole } from '../config/write-file.ts';
import { type GeneratedPage, pages } from './pages.ts';

const root = fileURLToPath(new URL('../../../../', import.meta.url));

/** Pages whose file says something else than the code, in the order of the list. */
export async function stalePages(
  all: readonly GeneratedPage[] = pages,
  folder: string = root,
): Promise<readonly string[]> {
  const stale = await Promise.all(
    all.map(async ({ path, text }) => {
      const found = await foundText(join(folder, path));
      return found === text() ? [] : [path];
    }),
  );
  return stale.flat();
}

/** A missing file is an empty one. */
function foundText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}

/** Writes the pages that are stale; resolves with their paths. */
export async function writePages(
  all: readonly GeneratedPage[] = pages,
  folder: string = root,
): Promise<readonly string[]> {
  const stale = await stalePages(all, folder);
  for (const { path, text } of all.filter((page) => stale.includes(page.path))) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeWhole(join(folder, path), text());
  }
  return stale;
}

/** `node generate.ts` writes what is stale; with `--check` it only says so, and the exit code is 1. */
async function main(args: readonly string[]): Promise<void> {
  const isCheck = args.includes('--check');
  const paths = isCheck ? await stalePages() : await writePages();
  const what = isCheck ? 'stale' : 'written';
  process.stdout.write(paths.map((path) => `${what}: ${path}\n`).join(''));
  if (isCheck && paths.length > 0) process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
