import { constants } from 'node:os';
import { abortable } from '@switchyard/core';
import { NativeError } from '../native-error.ts';
import type { NetlinkOptions, NetlinkSocket } from '../netlink-socket.ts';

/** What `receive` meets next: a datagram, nothing for now, or an errno by name. */
export type Scripted = Uint8Array | 'nothing' | 'ENOBUFS' | 'EMSGSIZE' | 'EPERM';

/** A netlink socket that plays what the kernel was recorded to say, beside tests with the real one. */
export class ScriptedSocket implements NetlinkSocket {
  readonly portId = 1;
  readonly options: NetlinkOptions;
  /** Every message sent, in hex. */
  readonly sent: string[] = [];
  isClosed = false;
  readonly #script: Scripted[];
  #added = Promise.withResolvers<void>();

  constructor(options: NetlinkOptions, script: readonly Scripted[]) {
    this.options = options;
    this.#script = [...script];
  }

  /** How many steps of the script are left. */
  get left(): number {
    return this.#script.length;
  }

  send(message: Uint8Array): void {
    this.sent.push(Buffer.from(message).toString('hex'));
  }

  receive(buffer: Uint8Array): number | undefined {
    const next = this.#script.shift() ?? 'nothing';
    if (next === 'nothing') return undefined;
    if (typeof next === 'string') {
      throw new NativeError('cannot receive over netlink', { errno: constants.errno[next], syscall: 'recvfrom' });
    }
    buffer.set(next);
    return next.length;
  }

  /** Appends steps to the script. */
  add(...steps: readonly Scripted[]): void {
    this.#script.push(...steps);
    this.#added.resolve();
  }

  /** Passes over `nothing`; without more steps it waits for some. */
  async readable(signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      while (this.#script[0] === 'nothing') this.#script.shift();
      if (this.#script.length > 0) return;
      this.#added = Promise.withResolvers();
      await abortable(this.#added.promise, signal);
    }
  }

  [Symbol.dispose](): void {
    this.isClosed = true;
  }
}
