import { isReceiveLoss, type NetlinkSocket, openNetlinkSocket, readMessages } from '@switchyard/native';

/** RTNLGRP_LINK; addresses and routes of IPv4 and IPv6. */
const groups: readonly number[] = [1, 5, 9, 7, 11];
/** RTM_NEWROUTE and RTM_DELROUTE. */
const routeMessages: ReadonlySet<number> = new Set([24, 25]);
/** Offset of the destination's prefix length in `struct rtmsg`. */
const prefixLengthOffset = 1;

/** Detects possible changes of devices, addresses or default routes of a network namespace. */
export class DeviceEvents implements Disposable {
  readonly #socket: NetlinkSocket;
  readonly #buffer = new Uint8Array(1 << 16);
  /** Ends the wait of `news`. */
  #wake = new AbortController();

  /** Listens from now on. Throws `NativeError`. */
  constructor(netns: string | undefined) {
    this.#socket = openNetlinkSocket({ protocol: 'route', groups, netns });
  }

  /** Whether something may have changed since the last call. Never waits. */
  hasChanged(): boolean {
    const hasChanged = this.#drain();
    if (hasChanged) this.#wake.abort();
    return hasChanged;
  }

  /**
   * Resolves when something may have changed, also if another call of `hasChanged` returns it meanwhile, and on disposal. At most one call
   * at a time. Rejects with `signal.reason`.
   */
  async news(signal: AbortSignal): Promise<void> {
    this.#wake = new AbortController();
    const wake = this.#wake.signal;
    try {
      await this.#socket.readable(AbortSignal.any([signal, wake]));
    } catch (error) {
      if (signal.aborted || !wake.aborted) throw error;
    }
  }

  #drain(): boolean {
    let hasChanged = false;
    for (;;) {
      try {
        const length = this.#socket.receive(this.#buffer);
        if (length === undefined) return hasChanged;
        hasChanged ||= matters(this.#buffer.subarray(0, length));
      } catch (error) {
        if (!isReceiveLoss(error)) throw error;
        hasChanged = true; // the lost event may be a change
      }
    }
  }

  [Symbol.dispose](): void {
    this.#wake.abort();
    this.#socket[Symbol.dispose]();
  }
}

/** Each pod adds and removes routes; only default routes concern uplinks. */
function matters(datagram: Uint8Array): boolean {
  for (const { type, start } of readMessages(datagram)) {
    if (!routeMessages.has(type) || datagram[start + prefixLengthOffset] === 0) return true;
  }
  return false;
}
