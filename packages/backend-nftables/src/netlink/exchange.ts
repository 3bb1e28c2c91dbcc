import { HostError } from '@switchyard/core';
import {
  NativeError,
  type NetlinkMessage,
  type NetlinkSocket,
  readMessages,
  NLM_F,
  NLMSG,
  readErrno,
} from '@switchyard/native';
import { setImmediate } from 'node:timers/promises';
import { type KernelAnswer, readAnswer } from './decode-ack.ts';
import type { EncodedBatch, Sent } from './encode-batch.ts';

/** Larger than any datagram that the kernel makes for a dump (32 KiB). */
const bufferSize = 1 << 16;
/** Datagrams of a dump between two turns of the event loop: about a millisecond of work. */
const datagramsPerTurn = 4;
/** How often a dump is begun anew because others wrote meanwhile. */
const dumpAttempts = 10;

/** Visits the messages of a dump; called between turns of the event loop. */
export type VisitMessage = (bytes: Uint8Array, message: NetlinkMessage) => void;

/** A dump and what is made of it. */
export interface Dump {
  /** Makes a new request, with a number of its own. */
  makeRequest(): Sent;
  readonly visit: VisitMessage;
  /** Forgets what was visited: called before each attempt. */
  restart(): void;
}

/**
 * Requests and their answers over one socket, which is opened at once, and anew after a failure that may have
 * left answers in it. One request at a time; the caller sees to that.
 */
export class Exchange implements Disposable {
  readonly #open: () => NetlinkSocket;
  readonly #buffer = new Uint8Array(bufferSize);
  #socket: NetlinkSocket | undefined;
  #isClosed = false;

  /** `open` throws where there is no socket to be had, and so does the constructor. */
  constructor(open: () => NetlinkSocket) {
    this.#open = open;
    this.#socket = open();
  }

  /** Sends a batch. The refusal that came first, or undefined when the kernel took everything. */
  batch({ bytes, messages }: EncodedBatch): KernelAnswer | undefined {
    const last = messages.at(-1);
    if (last === undefined) return undefined;
    return this.#guarded(() => {
      const socket = this.#opened();
      socket.send(bytes);
      let isTaken = false;
      let refusal: KernelAnswer | undefined;
      for (const [message, datagram] of this.#received(socket)) {
        if (message.type !== NLMSG.ERROR) continue;
        const answer = readAnswer(datagram, message);
        if (answer.errno !== 0) refusal ??= answer;
        else if (answer.sequence === last.sequence) isTaken = true;
      }
      if (refusal === undefined && !isTaken) throw noAnswer();
      return refusal;
    });
  }

  /** Sends a request that one message answers. An errno, or 0 and the message given to `visit`. */
  request({ bytes, sequence }: Sent, visit: VisitMessage): number {
    return this.#guarded(() => {
      const socket = this.#opened();
      socket.send(bytes);
      for (const [message, datagram] of this.#received(socket)) {
        if (message.sequence !== sequence) continue;
        if (message.type === NLMSG.ERROR) return readAnswer(datagram, message).errno;
        visit(datagram, message);
        return 0;
      }
      throw noAnswer();
    });
  }

  /** Reads a whole dump. Returns an errno, or 0. It begins anew when somebody wrote meanwhile. */
  async dump(dump: Dump, signal: AbortSignal): Promise<number> {
    for (let attempt = 0; attempt < dumpAttempts; attempt++) {
      dump.restart();
      const result = await this.#guardedDump(dump, signal);
      if (result !== 'interrupted') return result;
      await setImmediate();
    }
    throw new HostError(
      'nftables.dump',
      `cannot read our own nft table: it was changed by somebody during each of ${dumpAttempts} attempts; will be tried again`,
    );
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#drop();
  }

  async #guardedDump(dump: Dump, signal: AbortSignal): Promise<number | 'interrupted'> {
    try {
      return await this.#dumpOnce(dump, signal);
    } catch (error) {
      this.#drop(); // the rest of the dump may still come
      throw error;
    }
  }

  async #dumpOnce({ makeRequest, visit }: Dump, signal: AbortSignal): Promise<number | 'interrupted'> {
    const socket = this.#opened();
    const sent = makeRequest();
    socket.send(sent.bytes);
    let isInterrupted = false;
    for (let datagrams = 1; ; datagrams++) {
      const length = socket.receive(this.#buffer);
      if (length === undefined) throw noAnswer();
      const datagram = this.#buffer.subarray(0, length);
      for (const message of readMessages(datagram)) {
        if (message.sequence !== sent.sequence) continue;
        if ((message.flags & NLM_F.DUMP_INTR) !== 0) isInterrupted = true;
        const errno = endOf(datagram, message);
        if (errno !== undefined) return errno === 0 && isInterrupted ? 'interrupted' : errno;
        if (!isInterrupted) visit(datagram, message);
      }
      if (datagrams % datagramsPerTurn === 0) {
        await setImmediate();
        signal.throwIfAborted();
      }
    }
  }

  /** Everything that is there now. Answers are queued before `send` returns, so what is not there will not come. */
  *#received(socket: NetlinkSocket): Generator<readonly [NetlinkMessage, Uint8Array], undefined, unknown> {
    for (;;) {
      const length = socket.receive(this.#buffer);
      if (length === undefined) return undefined;
      const datagram = this.#buffer.subarray(0, length);
      for (const message of readMessages(datagram)) yield [message, datagram];
    }
  }

  #guarded<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      this.#drop();
      throw error;
    }
  }

  #opened(): NetlinkSocket {
    if (this.#isClosed) throw new HostError('nftables.closed', 'cannot talk to the kernel: the transport was disposed');
    this.#socket ??= this.#open();
    return this.#socket;
  }

  #drop(): void {
    this.#socket?.[Symbol.dispose]();
    this.#socket = undefined;
  }
}

/** The errno that ends a dump, 0 for its proper end; undefined when it goes on. */
function endOf(bytes: Uint8Array, message: NetlinkMessage): number | undefined {
  if (message.type === NLMSG.ERROR) return readAnswer(bytes, message).errno;
  if (message.type !== NLMSG.DONE) return undefined;
  return message.end - message.start >= 4 ? readErrno(bytes, message.start) : 0;
}

/** Whether the kernel could not take a datagram because it is too large for it just now. */
export function isTooLarge(error: unknown): error is NativeError {
  return (
    error instanceof NativeError &&
    error.syscall === 'sendto' &&
    ['EMSGSIZE', 'ENOBUFS', 'ENOMEM'].includes(error.errnoName)
  );
}

function noAnswer(): HostError {
  return new HostError(
    'nftables.noAnswer',
    'cannot tell whether the kernel took a request to nftables: it did not answer; what is there will be read back',
  );
}
