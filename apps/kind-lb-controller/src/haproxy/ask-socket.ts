import { createConnection } from 'node:net';
import { text } from 'node:stream/consumers';
import { HostError, messageOf } from '@switchyard/core';

/**
 * Sends one command to a HAProxy socket and returns the whole answer. Rejects with `HostError` when no process listens
 * there, with `signal.reason` when aborted.
 */
export async function askSocket(path: string, command: string, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted();
  const socket = createConnection({ path, signal });
  socket.end(`${command}\n`);
  try {
    return await text(socket);
  } catch (cause) {
    signal.throwIfAborted();
    const attempt = `cannot ask HAProxy '${command}' on ${path}`;
    throw new HostError('haproxy.socket', `${attempt}: ${messageOf(cause)}`, { cause });
  }
}
