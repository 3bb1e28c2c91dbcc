import type { Socket } from 'node:net';
import { addressAndPort, HostError } from '@switchyard/core';
import type { TcpListener, TcpNetwork, TcpPlace } from '../connections.ts';

/** Listens without sockets, and cannot dial. A place is had once. */
export class MemoryTcpNetwork implements TcpNetwork {
  readonly #open = new Set<string>();
  readonly #taken = new Set<string>();

  async listen({ address, port }: TcpPlace): Promise<TcpListener> {
    const place = addressAndPort(address, port);
    if (this.#open.has(place) || this.#taken.has(place)) {
      throw new HostError('host.listen', `cannot listen on ${place}: address already in use`);
    }
    this.#open.add(place);
    return { close: () => void this.#open.delete(place) };
  }

  dial(): Promise<Socket> {
    return Promise.reject(new HostError('host.dial', 'nothing can be dialled here'));
  }

  /** Another program has (or no longer has) `address:port`. */
  setTaken(place: string, isTaken: boolean): void {
    if (isTaken) this.#taken.add(place);
    else this.#taken.delete(place);
  }

  /** All of `address:port` that are listened on, sorted. */
  get places(): readonly string[] {
    return [...this.#open].sort();
  }
}
