import { execa } from 'execa';

/** Maximum wait for the lock, in seconds. */
const patience = 600;

/**
 * Runs `work` while no other process runs under the same file, which is made if needed. The lock belongs to a helper process
 * that ends with this one, so that a killed process leaves none behind.
 */
export async function withFileLock<T>(file: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const holder = execa('flock', ['--timeout', String(patience), file, 'sh', '-c', 'echo held; exec cat'], {
    stdin: 'pipe',
    reject: false,
    buffer: false,
    cancelSignal: signal,
  });
  try {
    const isHeld = await new Promise<boolean>((resolve) => {
      holder.stdout.once('data', () => resolve(true));
      void holder.then(() => resolve(false));
    });
    signal.throwIfAborted();
    if (!isHeld)
      throw new Error(`${file}: another process held this lock for ${patience} s, or flock (util-linux) is missing`);
    return await work();
  } finally {
    holder.stdin.end();
    await holder;
  }
}
