import type { Socket } from 'node:net';
import { type Clock, isExpected, type Logger, messageOf, type Millis, seconds } from '@switchyard/core';
import type { EndpointChoice } from './endpoint-choice.ts';
import { relay } from './relay.ts';
import type { TcpNetwork } from './tcp-network.ts';

/** Time to open a connection to an endpoint, as kube-proxy's. */
const dialTimeout: Millis = seconds(5);
/** Endpoints that are tried for one connection. */
const maxDials = 3;

/** Options of `Connections`. */
export interface ConnectionsOptions {
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

  /** Clients that are being served. */
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

  /** Resets every connection. */
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
    relay(client, endpoint);
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

  async #dial(endpoint: Parameters<TcpNetwork['dial']>[0], signal: AbortSignal): Promise<Socket> {
    const { network, clock } = this.#options;
    const done = new AbortController();
    const late = new AbortController();
    const waiting = clock.sleep(dialTimeout, done.signal).then(
      () => late.abort(new Error(`no answer in ${dialTimeout / 1000} s`)),
      () => undefined, // connected, or failed earlier
    );
    try {
      return await network.dial(endpoint, AbortSignal.any([signal, late.signal]));
    } finally {
      done.abort();
      await waiting;
    }
  }
}
