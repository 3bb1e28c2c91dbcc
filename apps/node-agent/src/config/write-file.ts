import { open, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { HostError } from '@switchyard/core';

/**
 * Writes a file as a whole: whoever reads it sees the old text or the new one, also when the disk is full or the machine
 * stops. What is not a regular file, such as /dev/stdout, is written to. Rejects with `HostError`; the old file is then
 * as it was.
 */
export async function writeWhole(file: string, text: string): Promise<void> {
  try {
    const target = await realpath(file).catch(() => file); // the file a link points to, not the link
    const isSpecial = await stat(target).then(
      (found) => !found.isFile(),
      () => false,
    );
    if (isSpecial) await writeFile(target, text);
    else await replaceFile(target, text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new HostError('host.writeFile', `cannot write ${file}: ${reason}; what was there is still there`, { cause });
  }
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
