import { connect, createServer, type Socket } from 'node:net';
import { addressAndPort, type Endpoint, HostError, type IpAddress, messageOf, type Port } from '@switchyard/core';

/** One address and port. */
export interface TcpPlace {
  readonly address: IpAddress;
  readonly port: Port;
}

/** An open listener. */
export interface TcpListener {
  /** Releases the port at once. Accepted connections stay open. */
  close(): void;
}

/** TCP of this machine. Sockets stay half-open when one end has finished sending. */
export interface TcpNetwork {
  /** Rejects with `HostError` if the address or port is unavailable. */
  listen(place: TcpPlace, accept: (client: Socket) => void): Promise<TcpListener>;
  /** Opens a connection; rejects with `HostError`, or when aborted. */
  dial(endpoint: Pick<Endpoint, 'address' | 'port'>, signal: AbortSignal): Promise<Socket>;
}

/** Time without data, in milliseconds, before probes detect a vanished peer. */
const keepAliveDelay = 15_000;
const socketOptions = { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveDelay };

/** TCP of the machine's kernel. */
export const tcpNetwork: TcpNetwork = { listen, dial };

function listen({ address, port }: TcpPlace, accept: (client: Socket) => void): Promise<TcpListener> {
  const server = createServer(socketOptions, accept);
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      const place = addressAndPort(address, port);
      reject(new HostError('host.listen', `cannot listen on ${place}: ${messageOf(cause)}`, { cause }));
    });
    server.once('listening', () => {
      server.removeAllListeners('error');
      server.on('error', () => undefined); // a failed accept concerns one client, which sees it itself
      resolve({ close: () => void server.close() });
    });
    server.listen({ host: address, port, exclusive: true });
  });
}

function dial({ address, port }: Pick<Endpoint, 'address' | 'port'>, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ ...socketOptions, host: address, port });
  return new Promise((resolve, reject) => {
    const onAbort = (): void => void socket.destroy(new HostError('host.dial', messageOf(signal.reason)));
    const onError = (cause: Error): void => {
      signal.removeEventListener('abort', onAbort);
      const place = addressAndPort(address, port);
      reject(new HostError('host.dial', `cannot connect to ${place}: ${messageOf(cause)}`, { cause }));
    };
    socket.once('error', onError);
    socket.once('connect', () => {
      signal.removeEventListener('abort', onAbort);
      socket.off('error', onError);
      resolve(socket);
    });
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}
