import { isReceiveLoss, type NetlinkSocket, openNetlinkSocket, readMessages } from '@switchyard/native';

/** RTNLGRP_LINK; addresses and routes of IPv4 and IPv6. */
const groups: readonly number[] = [1, 5, 9, 7, 11];
/** RTM_NEWROUTE and RTM_DELROUTE. */
const routeMessages: ReadonlySet<number> = new Set([24, 25]);
/** Where `struct rtmsg` has the length of the destination's prefix. */
const prefixLengthOffset = 1;

/** Tells whether devices, addresses or default routes of a network namespace may have changed. */
export class DeviceEvents implements Disposable {
  readonly #socket: NetlinkSocket;
  readonly #buffer = new Uint8Array(1 << 16);

  /** Listens from now on. Throws `NativeError`. */
  constructor(netns: string | undefined) {
    this.#socket = openNetlinkSocket({ protocol: 'route', groups, ...(netns === undefined ? {} : { netns }) });
  }

  /** Since the last call. Never waits. */
  hasChanged(): boolean {
    let hasChanged = false;
    for (;;) {
      try {
        const length = this.#socket.receive(this.#buffer);
        if (length === undefined) return hasChanged;
        hasChanged ||= matters(this.#buffer.subarray(0, length));
      } catch (error) {
        if (!isReceiveLoss(error)) throw error;
        hasChanged = true; // what it was is lost
      }
    }
  }

  [Symbol.dispose](): void {
    this.#socket[Symbol.dispose]();
  }
}

/** Routes come and go with pods; of them only default ones tell an uplink. */
function matters(datagram: Uint8Array): boolean {
  for (const { type, start } of readMessages(datagram)) {
    if (!routeMessages.has(type) || datagram[start + prefixLengthOffset] === 0) return true;
  }
  return false;
}
