import { type Clock, type Drift, millis } from '@switchyard/core';
import { isReceiveLoss, type NetlinkSocket, openNetlinkSocket, readMessages } from '@switchyard/native';
import type { OwnChanges } from '../own-changes.ts';
import type { DriftNotes } from './drift-notes.ts';

/** NFNLGRP_NFTABLES: every change of every table. */
const nftablesGroup = 7;

/** How often notices are looked at. */
const pollInterval = millis(100);

/** A burst of this size is kept while nobody looks: some 50,000 changed elements. */
const receiveBuffer = 8 << 20;

/** More than a datagram of notices has. */
const datagramLength = 1 << 16;

/** So that a flood of notices about tables of others does not hold up the process. */
const datagramsPerPoll = 2000;

/** What is watched. */
export interface WatchOptions {
  /** As for `NetlinkOptions.netns`. */
  readonly netns?: string | undefined;
  readonly clock: Clock;
  /** What these sockets do is filtered out by the kernel. */
  readonly own: OwnChanges;
  readonly notes: DriftNotes;
}

/** Reports foreign changes of our tables until aborted, those of one look together. Rejects with `NativeError`. */
export async function watchTables(
  options: WatchOptions,
  report: (drift: Drift) => void,
  signal: AbortSignal,
): Promise<void> {
  using watch = new TableWatch(options);
  while (!signal.aborted) {
    const drift = watch.poll();
    if (drift !== undefined) report(drift);
    try {
      await options.clock.sleep(pollInterval, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

class TableWatch implements Disposable {
  readonly #options: WatchOptions;
  readonly #buffer = new Uint8Array(datagramLength);
  #socket: NetlinkSocket;
  #ownVersion: number;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#ownVersion = options.own.version;
    this.#socket = this.#open();
  }

  poll(): Drift | undefined {
    const { own, notes } = this.#options;
    if (own.version !== this.#ownVersion) this.#reopen();
    this.#drain(this.#socket);
    return notes.take();
  }

  [Symbol.dispose](): void {
    this.#socket[Symbol.dispose]();
  }

  /** The filter cannot be changed, but a second socket can take over before the first one is emptied and closed. */
  #reopen(): void {
    this.#ownVersion = this.#options.own.version;
    using before = this.#socket;
    this.#socket = this.#open();
    this.#drain(before);
  }

  #open(): NetlinkSocket {
    const { netns, own } = this.#options;
    return openNetlinkSocket({
      protocol: 'netfilter',
      groups: [nftablesGroup],
      ignorePortIds: own.portIds,
      receiveBuffer,
      ...(netns === undefined ? {} : { netns }),
    });
  }

  #drain(socket: NetlinkSocket): void {
    for (let count = 0; count < datagramsPerPoll; count++) {
      const length = this.#receive(socket);
      if (length === undefined) return;
      const bytes = this.#buffer.subarray(0, length);
      for (const message of readMessages(bytes)) this.#options.notes.note(bytes, message);
    }
  }

  #receive(socket: NetlinkSocket): number | undefined {
    for (;;) {
      try {
        return socket.receive(this.#buffer);
      } catch (error) {
        if (!isReceiveLoss(error)) throw error;
        this.#options.notes.noteLoss();
      }
    }
  }
}
