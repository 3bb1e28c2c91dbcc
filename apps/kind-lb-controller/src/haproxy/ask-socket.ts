import { createConnection } from 'node:net';
import { HostError } from '@switchyard/core';

/**
 * Sends one command to a HAProxy socket and returns the whole answer. Rejects with `HostError` when no process listens
 * there, with `signal.reason` when aborted.
 */
export function askSocket(path: string, command: string, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = createConnection({ path, signal });
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.once('error', (cause) => {
      reject(
        signal.aborted
          ? signal.reason
          : new HostError('haproxy.socket', `cannot ask HAProxy '${command}' on ${path}: ${cause.message}`, { cause }),
      );
    });
    socket.once('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    socket.end(`${command}\n`);
  });
}
