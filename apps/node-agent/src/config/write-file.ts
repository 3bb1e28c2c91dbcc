import { appendFile, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { HostError, messageOf } from '@switchyard/core';

/**
 * Writes a file atomically: a reader sees the old text or the new one, also when the disk is full or the machine stops.
 * Appends to files that are not regular, such as /dev/stdout. Rejects with `HostError`; the old file is then unchanged.
 */
export async function writeWhole(file: string, text: string): Promise<void> {
  try {
    if (await isSpecial(file)) await appendFile(file, text);
    else await replaceFile(await realpath(file).catch(() => file), text); // the file a link points to, not the link
  } catch (cause) {
    const reason = messageOf(cause);
    throw new HostError('host.writeFile', `cannot write ${file}: ${reason}; the old file is unchanged`, { cause });
  }
}

/** Also true for a device that leads to a regular file, as /dev/stdout may: the shell owns that file. */
async function isSpecial(file: string): Promise<boolean> {
  if (/^\/(?:dev|proc)\//.test(resolve(file))) return true;
  return stat(file).then(
    (found) => !found.isFile(),
    () => false,
  );
}

async function replaceFile(target: string, text: string): Promise<void> {
  const draft = join(dirname(target), `.${basename(target)}.${process.pid}.tmp`);
  try {
    await rm(draft, { force: true }); // of a process that was killed
    await using handle = await open(draft, 'wx', 0o644);
    await handle.writeFile(text);
    await handle.sync();
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
}
