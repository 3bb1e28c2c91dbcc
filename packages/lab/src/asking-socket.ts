import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { answered, failure, type Outcome } from './probe.ts';
import type { ProbeRequest } from './probe-types.ts';
import { afterSilence } from './silence.ts';

/** A UDP socket that is connected once or never and sends repeated questions. */
export interface AskingSocket {
  /** Sends one datagram and returns the answer or the socket's error. */
  ask(timeout: number): Promise<Outcome>;
  close(): void;
}

/** Connects. Also resolves if that fails: the first `ask` then returns the failure. */
export async function openAskingSocket(request: ProbeRequest): Promise<AskingSocket> {
  const socket = createSocket(isIPv6(request.address) ? 'udp6' : 'udp4');
  let isOpen = true;
  /** Error of the socket itself; it stays for all later questions. */
  let broken: Error | undefined;
  let tell: (outcome: Outcome) => void = () => undefined;
  const connected = Promise.withResolvers<void>();
  socket.on('error', (error) => {
    // ECONNREFUSED concerns one datagram; any other error concerns the socket.
    if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') broken = error;
    connected.resolve(); // where it cannot be bound
    tell(failure(error));
  });
  const { address, port, isUnconnected = false } = request;
  socket.on('message', (message, from) => {
    if (!isUnconnected || (from.address === address && from.port === port)) tell(answered(message.toString()));
  });
  const source = request.source === undefined ? {} : { address: request.source };
  socket.bind({ port: request.sourcePort ?? 0, ...source }, () => {
    if (isUnconnected) return connected.resolve();
    socket.connect(port, address, (error?: Error) => {
      broken = error;
      connected.resolve();
    });
  });
  await connected.promise;
  return {
    ask: async (timeout) => {
      if (broken !== undefined) return failure(broken);
      const { promise, resolve } = Promise.withResolvers<Outcome>();
      tell = resolve;
      const stopWaiting = afterSilence(timeout, () => resolve({ status: 'timeout' }));
      const sent = (error: NodeJS.ErrnoException | null): void => {
        if (error !== null && error.code !== 'EPERM') resolve(failure(error));
      };
      if (isUnconnected) socket.send('who', port, address, sent);
      else socket.send('who', sent);
      return promise.finally(stopWaiting);
    },
    close: () => {
      if (isOpen) socket.close();
      isOpen = false;
    },
  };
}
