import { createServer } from 'node:net';
import { type Clock, HostError, type Millis, millis } from '@switchyard/core';

const pollInterval = millis(20);

/**
 * Waits until no other worker of this network namespace works, then holds the lock until disposed. The kernel lets go of it however a
 * worker ends. Rejects with `HostError` when that takes longer than `limit`.
 */
export async function lockWorkers(
  name: string,
  { clock, limit }: { readonly clock: Clock; readonly limit: Millis },
  signal: AbortSignal,
): Promise<AsyncDisposable> {
  const deadline = clock.monotonic() + limit;
  for (;;) {
    const lock = await tryLock(name);
    if (lock !== undefined) return lock;
    if (clock.monotonic() >= deadline) {
      throw new HostError('worker.lock', `another worker has been busy for ${limit / 1000} s; try again later`);
    }
    await clock.sleep(pollInterval, signal);
  }
}

/** An abstract socket is a name in the network namespace, not a file that could stay behind. */
function tryLock(name: string): Promise<AsyncDisposable | undefined> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(new HostError('worker.lock', `cannot take the workers' lock: ${error.message}`, { cause: error }));
    });
    server.listen(`\0${name}`, () =>
      resolve({ [Symbol.asyncDispose]: () => new Promise((done) => server.close(() => done())) }),
    );
  });
}
