// Runs inside a network namespace: connects to the addresses that its parent sends and passes the sockets back.
import { connect } from 'node:net';
import type { ConnectCall, ConnectReply } from '../apiserver/namespace-sockets.ts';

process.on('message', ({ id, host, port }: ConnectCall) => {
  const reply = (message: ConnectReply): void => void process.send?.(message);
  const socket = connect({ host, port });
  const refuse = (error: NodeJS.ErrnoException): void => reply({ id, failure: error.code ?? error.message });
  socket.once('error', refuse);
  socket.once('connect', () => {
    socket.off('error', refuse);
    socket.on('error', () => socket.destroy()); // while it is on its way
    process.send?.({ id, failure: undefined } satisfies ConnectReply, socket);
  });
});
process.on('disconnect', () => process.exit(0));
