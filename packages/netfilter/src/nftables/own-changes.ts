import { type NetlinkOptions, type NetlinkSocket, openNetlinkSocket } from '@switchyard/native';

/** Own changes of this process in a network namespace; both families' backends share the object. */
export class OwnChanges {
  readonly #portIds = new Map<number, number>();
  readonly #listeners = new Set<() => void>();
  #version = 0;
  #commits = 0;
  #unwatched = 0;
  #last: Promise<unknown> = Promise.resolve();

  /** Incremented whenever `portIds` or `isUnwatched` changes. */
  get version(): number {
    return this.#version;
  }

  /** Own transactions that changed something, each of which is a generation of the kernel's. */
  get commits(): number {
    return this.#commits;
  }

  /** Whether watches of this process are to receive no notices now. */
  get isUnwatched(): boolean {
    return this.#unwatched > 0;
  }

  /** The netlink sockets that write. */
  get portIds(): readonly number[] {
    return [...this.#portIds.keys()];
  }

  /** Whether a socket belongs to this process. */
  has(portId: number): boolean {
    return this.#portIds.has(portId);
  }

  /** Registers an own socket until the result is disposed. */
  register(portId: number): Disposable {
    this.#portIds.set(portId, (this.#portIds.get(portId) ?? 0) + 1);
    this.#change();
    const held = new DisposableStack();
    held.defer(() => {
      const users = (this.#portIds.get(portId) ?? 0) - 1;
      if (users > 0) this.#portIds.set(portId, users);
      else this.#portIds.delete(portId);
      this.#change();
    });
    return held;
  }

  /** Counts a transaction. */
  noteCommit(): void {
    this.#commits++;
  }

  /**
   * Until the result is disposed, no watch of this process receives notices: for a listener the kernel makes a notice of every element of
   * a write, which takes longer than the write. Watches find out afterwards whether others changed something meanwhile.
   */
  unwatched(): Disposable {
    if (this.#unwatched++ === 0) this.#change();
    const held = new DisposableStack();
    held.defer(() => {
      if (--this.#unwatched === 0) this.#change();
    });
    return held;
  }

  /** Calls `listener` after each change of `version`, until the result is disposed. */
  onChange(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  #change(): void {
    this.#version++;
    for (const listener of this.#listeners) listener();
  }

  /** Runs `work` after all earlier work has ended, even if that failed. */
  exclusively<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work, work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

/** Opens a socket for own writes, which are not reported as drift until it is disposed. */
export function openOwnSocket(options: NetlinkOptions): NetlinkSocket {
  const socket = openNetlinkSocket(options);
  const registration = ownChanges(options.netns).register(socket.portId);
  return {
    portId: socket.portId,
    send: (message) => socket.send(message),
    receive: (buffer) => socket.receive(buffer),
    readable: (signal) => socket.readable(signal),
    [Symbol.dispose]: () => {
      registration[Symbol.dispose]();
      socket[Symbol.dispose]();
    },
  };
}

/** A process has one of these per network namespace, because the kernel numbers sockets per namespace. */
const byNamespace = new Map<string, OwnChanges>();

/** Returns the own changes of a namespace, given as for `NetlinkOptions.netns`. */
export function ownChanges(netns: string | undefined): OwnChanges {
  const key = netns ?? '';
  let found = byNamespace.get(key);
  if (found === undefined) {
    found = new OwnChanges();
    byNamespace.set(key, found);
  }
  return found;
}
