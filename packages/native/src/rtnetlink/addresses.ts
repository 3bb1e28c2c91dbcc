import { type Clock, type Millis, millis, untilBeat } from '@switchyard/core';
import { type NetlinkOptions, type NetlinkSocket, openNetlinkSocket, receiveNotices } from '../netlink-socket.ts';

/** Options of an address watch. */
export interface AddressWatchOptions {
  readonly clock: Clock;
  /** Path of the network namespace; default: the process's own. */
  readonly netns?: string | undefined;
  /** Shortest time between two steps; default 250 ms. */
  readonly interval?: Millis;
  /** For tests; default `openNetlinkSocket`. */
  readonly open?: (options: NetlinkOptions) => NetlinkSocket;
}

/** RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR. When an interface comes up, the kernel sends an event of the link only. */
const groups: readonly number[] = [1, 5, 9];
const defaultInterval: Millis = millis(250);
/** A message about a link with many virtual functions is longer. Its loss counts as a change, so its content is not needed. */
const bufferLength = 1 << 15;

/** Yields when addresses or links may have changed, at most once in an interval, until aborted. Throws `NativeError`, `NativeMissingError`. */
export async function* addressChanges(
  options: AddressWatchOptions,
  signal: AbortSignal,
): AsyncGenerator<void, void, undefined> {
  const { clock, netns, interval = defaultInterval, open = openNetlinkSocket } = options;
  using socket = open({ protocol: 'route', groups, netns });
  const buffer = new Uint8Array(bufferLength);
  while (!signal.aborted) {
    if ([...receiveNotices(socket, buffer)].length > 0) yield;
    try {
      await socket.readable(signal);
      await clock.sleep(untilBeat(clock, interval), signal); // events of one change come together
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}
