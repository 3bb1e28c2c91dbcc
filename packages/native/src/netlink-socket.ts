import { constants } from 'node:os';
import { UsageError } from '@switchyard/core';
import { type Addon, loadAddon } from './addon.ts';
import { NativeError } from './native-error.ts';

/** Protocol numbers of linux/netlink.h. */
const protocols = { route: 0, sockDiag: 4, netfilter: 12 } as const;

/** Protocol of a netlink socket: NETLINK_NETFILTER, NETLINK_ROUTE or NETLINK_SOCK_DIAG. */
export type NetlinkProtocol = keyof typeof protocols;

/** Options of a netlink socket. */
export interface NetlinkOptions {
  readonly protocol: NetlinkProtocol;
  /** Multicast groups to join, by number (not by bit). */
  readonly groups?: readonly number[];
  /** Path of the socket's network namespace, such as `/run/netns/x`; default: the process's own. */
  readonly netns?: string | undefined;
  /** Bytes; limits of the machine are passed where the process may. Default: the kernel's. */
  readonly sendBuffer?: number;
  /** Bytes, as `sendBuffer`. */
  readonly receiveBuffer?: number;
  /** Notifications caused by the sockets with these port ids never arrive: the kernel filters them. */
  readonly ignorePortIds?: readonly number[];
}

/** Never waits; stays in its network namespace. Extended acknowledgements (kernel 4.12) are on. */
export interface NetlinkSocket extends Disposable {
  /** The socket's address within its namespace. The kernel writes it into notifications of changes that this socket made. */
  readonly portId: number;
  /** Sends one datagram; the kernel has processed it when this returns. Throws `NativeError`. */
  send(message: Uint8Array): void;
  /** Receives a datagram; returns its length, or undefined. Throws `NativeError`: ENOBUFS when some were dropped, EMSGSIZE when it did not fit. */
  receive(buffer: Uint8Array): number | undefined;
  /** Resolves when something can be received. Rejects with `signal.reason`, or `UsageError` when the socket is closed. One call at a time. */
  readable(signal: AbortSignal): Promise<void>;
}

/** Opens a netlink socket. Throws `NativeError`, or `NativeMissingError` where the addon was not built. */
export function openNetlinkSocket(options: NetlinkOptions): NetlinkSocket {
  const { protocol, netns, groups = [], ignorePortIds = [], sendBuffer = 0, receiveBuffer = 0 } = options;
  const addon = loadAddon();
  const opened = addon.openNetlink(protocols[protocol], netns ?? '', groups, ignorePortIds, sendBuffer, receiveBuffer);
  if (opened.error !== 0) {
    const where = netns === undefined ? '' : ` in the network namespace ${netns}`;
    const failure = { errno: opened.error, syscall: opened.syscall };
    throw new NativeError(`cannot open a netlink socket (${protocol})${where}`, failure);
  }
  return new OpenSocket(addon, opened);
}

const { EAGAIN, ENOBUFS, EMSGSIZE } = constants.errno;

/** Waiting datagrams, all in `buffer`; undefined for lost ones: the caller must read the state that they announced. */
export function* receiveNotices(socket: NetlinkSocket, buffer: Uint8Array): Generator<Uint8Array | undefined, void> {
  for (;;) {
    let length: number | undefined;
    try {
      length = socket.receive(buffer);
      if (length === undefined) return;
    } catch (error) {
      if (!(error instanceof NativeError) || ![ENOBUFS, EMSGSIZE].includes(error.errno)) throw error;
    }
    yield length === undefined ? undefined : buffer.subarray(0, length);
  }
}

class OpenSocket implements NetlinkSocket {
  readonly portId: number;
  readonly #addon: Addon;
  #fd: number | undefined;
  /** Ends the wait in progress. */
  #endWait: ((reason: unknown) => void) | undefined;

  constructor(addon: Addon, { fd, portId }: { readonly fd: number; readonly portId: number }) {
    this.#addon = addon;
    this.#fd = fd;
    this.portId = portId;
  }

  send(message: Uint8Array): void {
    const result = this.#addon.send(this.#open(), message);
    if (result < 0) {
      const next = result === -EMSGSIZE ? 'open the socket with a larger send buffer, or send less at once' : '';
      const failure = { errno: -result, syscall: 'sendto' };
      throw new NativeError(`cannot send ${message.byteLength} bytes over netlink`, failure, next);
    }
  }

  receive(buffer: Uint8Array): number | undefined {
    const result = this.#addon.receive(this.#open(), buffer);
    if (result >= 0) return result;
    if (result === -EAGAIN) return undefined;
    throw new NativeError('cannot receive over netlink', { errno: -result, syscall: 'recvfrom' });
  }

  async readable(signal: AbortSignal): Promise<void> {
    const fd = this.#open();
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stop = this.#addon.awaitReadable(fd, resolve);
    if (typeof stop === 'number') {
      throw new NativeError('cannot wait for a netlink socket', { errno: -stop, syscall: 'epoll_ctl' });
    }
    const onAbort = (): void => this.#endWait?.(signal.reason);
    this.#endWait = (reason) => {
      stop();
      reject(reason);
    };
    signal.addEventListener('abort', onAbort);
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.#endWait = undefined;
    }
  }

  [Symbol.dispose](): void {
    this.#endWait?.(closed());
    if (this.#fd !== undefined) this.#addon.close(this.#fd);
    this.#fd = undefined;
  }

  #open(): number {
    if (this.#fd === undefined) throw closed();
    return this.#fd;
  }
}

function closed(): UsageError {
  return new UsageError('native.closed', 'this netlink socket was closed before');
}
