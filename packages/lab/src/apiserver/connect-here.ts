import { connect } from 'node:net';
import type { Connect } from './connect-in-namespace.ts';

/** Connects from this process's own network namespace. */
export const connectHere: Connect = ({ host, port }, signal) =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = connect({ host, port });
    const onAbort = (): void => void socket.destroy();
    signal.addEventListener('abort', onAbort, { once: true });
    const finish = (): void => signal.removeEventListener('abort', onAbort);
    socket.once('error', (error) => {
      finish();
      reject(error);
    });
    socket.once('close', () => (signal.aborted ? reject(signal.reason) : undefined));
    socket.once('connect', () => {
      finish();
      resolve(socket);
    });
  });
