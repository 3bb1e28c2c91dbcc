import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { withFileLock } from '../debian/file-lock.ts';
import { root } from '../workspace.ts';

const folder = join(root, 'node_modules/.cache/switchyard-images');

/**
 * The folder `name` of the images' cache. The first caller fills it, aside, and it appears when it is complete; callers at the
 * same time, by other processes too, wait.
 */
export async function cachedFolder(
  name: string,
  fill: (folder: string) => Promise<void>,
  signal: AbortSignal,
): Promise<string> {
  const target = join(folder, name);
  if (existsSync(target)) return target;
  await mkdir(folder, { recursive: true });
  const work = async (): Promise<void> => {
    if (existsSync(target)) return;
    const partial = `${target}.partial`;
    await rm(partial, { recursive: true, force: true });
    await mkdir(partial);
    try {
      await fill(partial);
      await rename(partial, target);
    } finally {
      await rm(partial, { recursive: true, force: true });
    }
  };
  await withFileLock(join(folder, `${name}.lock`), work, signal);
  return target;
}

/** A folder of the cache that is there for the length of `use`. Those of processes that were killed are removed first. */
export async function withScratchFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(folder)) {
    const owner = /^scratch-(\d+)-/.exec(name)?.[1];
    if (owner === undefined || existsSync(`/proc/${owner}`)) continue;
    await rm(join(folder, name), { recursive: true, force: true });
  }
  const scratch = await mkdtemp(join(folder, `scratch-${process.pid}-`));
  try {
    return await use(scratch);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
