import { aborted, type Clock, HostError, millis, untilBeat } from '@switchyard/core';
import { type Drift } from '@switchyard/core/engine';
import {
  NetlinkAsker,
  type NetlinkMessage,
  type NetlinkOptions,
  type NetlinkSocket,
  openNetlinkSocket,
  readMessages,
  receiveNotices,
} from '@switchyard/native';
import { NFT_MSG } from './constants.ts';
import { type NoticeReader, readGeneration } from './notices.ts';
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
  /** Whether our tables differ from what was loaded; asked when others changed some table while nothing was watched. Default: they may. */
  readonly isDamaged?: () => boolean;
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
  readonly #following: Disposable;
  readonly #buffer = new Uint8Array(datagramLength);
  /** Undefined while this process writes unwatched. */
  #socket: NetlinkSocket | undefined;
  #ownVersion: number;
  /** Foreign transactions up to the time when the socket was closed. */
  #foreign = 0;

  constructor(options: TableWatchOptions) {
    this.#options = options;
    this.#own = options.own ?? new OwnChanges();
    this.#ownVersion = this.#own.version;
    this.#socket = this.#own.isUnwatched ? undefined : this.#open();
    if (this.#socket === undefined) this.#foreign = this.#countForeign();
    this.#following = this.#own.onChange(() => this.#leave());
  }

  poll(): Drift | undefined {
    if (this.#own.version !== this.#ownVersion) this.#reopen();
    if (this.#socket !== undefined) this.#drain(this.#socket);
    return this.#options.notes.take();
  }

  /** Resolves when there is something to poll. Rejects with `signal.reason`. */
  async news(signal: AbortSignal): Promise<void> {
    if (this.#own.version !== this.#ownVersion) return;
    const changed = new AbortController();
    using _ = this.#own.onChange(() => changed.abort());
    const end = AbortSignal.any([signal, changed.signal]);
    try {
      await (this.#socket?.readable(end) ?? aborted(end));
    } catch (error) {
      if (signal.aborted || !changed.signal.aborted) throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#following[Symbol.dispose]();
    this.#socket?.[Symbol.dispose]();
  }

  /** Closes the socket at once when a write begins that is not to be watched. */
  #leave(): void {
    if (!this.#own.isUnwatched || this.#socket === undefined) return;
    using before = this.#socket;
    this.#socket = undefined;
    this.#foreign = this.#countForeign();
    this.#empty(before);
  }

  /** The filter cannot be changed, but a second socket can take over before the first one is emptied and closed. */
  #reopen(): void {
    this.#ownVersion = this.#own.version;
    if (this.#own.isUnwatched) return;
    using before = this.#socket;
    this.#socket = this.#open();
    if (before !== undefined) return this.#empty(before);
    const { isDamaged, notes } = this.#options;
    if (this.#countForeign() !== this.#foreign && isDamaged?.() !== false) {
      notes.noteLoss('unknown changes during a load');
    }
  }

  /** Transactions of others since some time before, modulo 2^32; NaN, which equals no number, if the kernel does not say. */
  #countForeign(): number {
    const { netns, open = openNetlinkSocket } = this.#options;
    try {
      using socket = open({ protocol: 'netfilter', netns });
      return (currentGeneration(socket) - this.#own.commits) >>> 0;
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      return Number.NaN;
    }
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

  /** Reads the rest of a socket that is about to be closed. What cannot be read counts as lost. */
  #empty(socket: NetlinkSocket): void {
    try {
      if (this.#drain(socket)) return;
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
    }
    this.#options.notes.noteLoss();
  }

  /** Returns whether nothing is left. */
  #drain(socket: NetlinkSocket): boolean {
    const { notes } = this.#options;
    let count = 0;
    for (const bytes of receiveNotices(socket, this.#buffer)) {
      if (bytes === undefined) notes.noteLoss();
      else for (const message of readMessages(bytes)) notes.note(bytes, message);
      if (++count >= datagramsPerPoll) return false;
    }
    return true;
  }
}

/** Number of the namespace's transactions of nftables, as the kernel counts them. */
function currentGeneration(socket: NetlinkSocket): number {
  const asker = new NetlinkAsker(socket, { attempt: 'cannot read the generation of the rules', code: 'nftables' });
  const read = (bytes: Uint8Array, { start, end }: NetlinkMessage): number =>
    readGeneration(bytes, { start: start + 4, end }).id; // behind nfgenmsg
  const id = asker.get(NFT_MSG.GETGEN, (writer) => writer.netfilterHeader(0, 0), { read });
  if (id === undefined) throw new HostError('nftables.noAnswer', 'the kernel has no generation of the rules');
  return id;
}
