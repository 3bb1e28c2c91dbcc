import { rm } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import { ConfigError } from '@switchyard/core';

/**
 * Holds a run directory for this process until disposed: two controllers would replace each other's HAProxy in turn.
 * The kernel lets go of it however the process ends. Throws `ConfigError` if another one holds it.
 */
export async function holdRunDirectory(runDirectory: string): Promise<AsyncDisposable> {
  const path = `${runDirectory}/controller.sock`;
  if (await isAnswered(path)) {
    throw new ConfigError(
      'lb.running',
      `another switchyard-lb runs with ${runDirectory}; stop it, or use another --run-directory`,
    );
  }
  await rm(path, { force: true }); // left by one that was killed
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  server.unref();
  return { [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())) };
}

function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    const answer = (isThere: boolean) => (): void => {
      socket.destroy();
      resolve(isThere);
    };
    socket.once('connect', answer(true)).once('error', answer(false));
  });
}
