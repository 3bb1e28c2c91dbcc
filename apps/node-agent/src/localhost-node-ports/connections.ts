import { type Socket, connect, createServer } from 'node:net';
import {
  type Clock,
  isExpected,
  type Logger,
  messageOf,
  type Millis,
  seconds,
  addressAndPort,
  type Endpoint,
  HostError,
  type IpAddress,
  type Port,
  within,
} from '@switchyard/core';
import type { EndpointChoice } from './endpoint-choice.ts';

/** Time to open a connection to an endpoint, as kube-proxy's. */
const dialTimeout: Millis = seconds(5);
/** Endpoints that are tried for one connection. */
const maxDials = 3;

interface ConnectionsOptions {
  readonly network: Pick<TcpNetwork, 'dial'>;
  /** Maximum number of open connections; each takes two descriptors. */
  readonly limit: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * All connections of the loopback proxies of a node. They are independent of listeners: an accepted connection stays open until one
 * of its ends closes it, also if the Service is deleted. Connections above the limit are reset.
 */
export class Connections implements AsyncDisposable {
  readonly #options: ConnectionsOptions;
  readonly #clients = new Set<Socket>();
  readonly #endpoints = new Set<Socket>();
  readonly #stop = new AbortController();
  #isFull = false;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#clients.size;
  }

  /** Serves a client that a listener has accepted. */
  accept(client: Socket, choice: EndpointChoice): void {
    client.on('error', () => undefined); // handled by the close event that follows
    const source = client.remoteAddress;
    if (source === undefined || !this.#hasRoom()) return void client.resetAndDestroy();
    this.#clients.add(client);
    client.once('close', () => this.#clients.delete(client));
    void this.#serve(client, source, choice);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error('the agent stops'));
    for (const socket of [...this.#clients, ...this.#endpoints]) socket.resetAndDestroy();
  }

  #hasRoom(): boolean {
    const { limit, logger } = this.#options;
    const isFull = this.#clients.size >= limit;
    if (isFull && !this.#isFull)
      logger.warn('too many connections to NodePorts on loopback, new ones are reset', { limit });
    this.#isFull = isFull;
    return !isFull;
  }

  async #serve(client: Socket, source: string, choice: EndpointChoice): Promise<void> {
    const gone = new AbortController();
    client.once('close', () => gone.abort(new Error('the client has closed the connection')));
    const signal = AbortSignal.any([this.#stop.signal, gone.signal]);
    const endpoint = await this.#connect(source, choice, signal);
    if (endpoint === undefined) return void client.resetAndDestroy();
    this.#endpoints.add(endpoint);
    endpoint.once('close', () => this.#endpoints.delete(endpoint));
    passOn(client, endpoint);
    passOn(endpoint, client);
  }

  /** Undefined when no endpoint could be reached. */
  async #connect(source: string, choice: EndpointChoice, signal: AbortSignal): Promise<Socket | undefined> {
    for (const endpoint of choice.candidates(source, maxDials)) {
      if (signal.aborted) return undefined;
      try {
        const socket = await this.#dial(endpoint, signal);
        choice.pin(source, endpoint);
        return socket;
      } catch (error) {
        if (!isExpected(error)) throw error;
        this.#options.logger.debug('endpoint not reached for a NodePort on loopback', { error: messageOf(error) });
      }
    }
    return undefined;
  }

  #dial(endpoint: Endpoint, signal: AbortSignal): Promise<Socket> {
    const { network, clock } = this.#options;
    const late = (): Error => new HostError('host.dial', `no answer in ${dialTimeout / 1000} s`);
    return within({ clock, limit: dialTimeout, late }, (stop) => network.dial(endpoint, stop), signal);
  }
}

/**
 * Relays one direction between two half-open sockets. Its end is relayed and leaves the other direction open; a failure of one
 * socket resets the other. Buffers no more than both sockets do.
 */
function passOn(from: Socket, to: Socket): void {
  from.on('error', () => to.resetAndDestroy());
  from.on('close', () => {
    if (!from.readableEnded) to.destroy(); // closed before its end was read: nothing ends `to` otherwise
  });
  if (from.destroyed) to.resetAndDestroy();
  else from.pipe(to);
}

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

/** Probes detect a vanished peer after 15 s without data. */
const socketOptions = { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: 15_000 };

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
