import { type Clock, millis, untilBeat } from '@switchyard/core';
import { type Drift } from '@switchyard/core/engine';
import {
  type NetlinkOptions,
  type NetlinkSocket,
  openNetlinkSocket,
  readMessages,
  receiveNotices,
} from '@switchyard/native';
import type { NoticeReader } from './notices.ts';
import { OwnChanges } from './own-changes.ts';

/** NFNLGRP_NFTABLES: every change of every table. */
const nftablesGroup = 7;

/** Shortest time between two readings: notices of one change come together. */
const readingInterval = millis(100);

/** Kernel buffer for notices between two readings: some 50,000 changed elements. */
const receiveBuffer = 8 << 20;

/** Larger than any datagram of notices. */
const datagramLength = 1 << 16;

/** Bound that keeps a flood of notices about foreign tables from blocking the process. */
const datagramsPerPoll = 2000;

/** Namespace to watch, own sockets, and the receiver of notices. */
export interface TableWatchOptions {
  /** As for `NetlinkOptions.netns`. */
  readonly netns?: string | undefined;
  readonly clock: Clock;
  /** Own sockets, whose changes the kernel filters out. Default: none. */
  readonly own?: OwnChanges;
  readonly notes: NoticeReader;
  /** For tests; default `openNetlinkSocket`. */
  readonly open?: (options: NetlinkOptions) => NetlinkSocket;
}

/** Reports foreign changes until aborted. Rejects with `NativeError`, or `NativeMissingError` without the addon. */
export async function watchTables(
  options: TableWatchOptions,
  report: (drift: Drift) => void,
  signal: AbortSignal,
): Promise<void> {
  using watch = new TableWatch(options);
  while (!signal.aborted) {
    const drift = watch.poll();
    if (drift !== undefined) report(drift);
    try {
      await watch.news(signal);
      await options.clock.sleep(untilBeat(options.clock, readingInterval), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

class TableWatch implements Disposable {
  readonly #options: TableWatchOptions;
  readonly #own: OwnChanges;
  readonly #buffer = new Uint8Array(datagramLength);
  #socket: NetlinkSocket;
  #ownVersion: number;

  constructor(options: TableWatchOptions) {
    this.#options = options;
    this.#own = options.own ?? new OwnChanges();
    this.#ownVersion = this.#own.version;
    this.#socket = this.#open();
  }

  poll(): Drift | undefined {
    if (this.#own.version !== this.#ownVersion) this.#reopen();
    this.#drain(this.#socket);
    return this.#options.notes.take();
  }

  /** Resolves when there is something to poll. Rejects with `signal.reason`. */
  async news(signal: AbortSignal): Promise<void> {
    if (this.#own.version !== this.#ownVersion) return;
    const changed = new AbortController();
    using _ = this.#own.onChange(() => changed.abort());
    try {
      await this.#socket.readable(AbortSignal.any([signal, changed.signal]));
    } catch (error) {
      if (signal.aborted || !changed.signal.aborted) throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#socket[Symbol.dispose]();
  }

  /** The filter cannot be changed, but a second socket can take over before the first one is emptied and closed. */
  #reopen(): void {
    this.#ownVersion = this.#own.version;
    using before = this.#socket;
    this.#socket = this.#open();
    this.#drain(before);
  }

  #open(): NetlinkSocket {
    const { netns, open = openNetlinkSocket } = this.#options;
    return open({
      protocol: 'netfilter',
      groups: [nftablesGroup],
      ignorePortIds: this.#own.portIds,
      receiveBuffer,
      netns,
    });
  }

  #drain(socket: NetlinkSocket): void {
    const { notes } = this.#options;
    let count = 0;
    for (const bytes of receiveNotices(socket, this.#buffer)) {
      if (bytes === undefined) notes.noteLoss();
      else for (const message of readMessages(bytes)) notes.note(bytes, message);
      if (++count >= datagramsPerPoll) return;
    }
  }
}
