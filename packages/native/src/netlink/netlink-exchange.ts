import { setImmediate } from 'node:timers/promises';
import type { NetlinkSocket } from '../netlink-socket.ts';
import { NLM_F, NLMSG, NLMSGERR } from './constants.ts';
import { messageHeaderLength } from './message-writer.ts';
import { type NetlinkMessage, readAttributes, readErrno, readMessages, readText, readUint32 } from './read-messages.ts';

/** Larger than any datagram that the kernel makes for a dump (32 KiB). */
const bufferSize = 1 << 16;
/** Datagrams of a dump between two turns of the event loop: about a millisecond of work. */
const datagramsPerTurn = 4;
/** Attempts at a dump before it fails because the table changes. */
const dumpAttempts = 10;

/** Visits the messages of a dump; called between turns of the event loop. */
export type VisitMessage = (bytes: Uint8Array, message: NetlinkMessage) => void;

/** A request and the sequence number of its answers. */
export interface NetlinkRequest {
  readonly bytes: Uint8Array;
  readonly sequence: number;
}

/** Messages to send together. */
export interface NetlinkBatch {
  readonly bytes: Uint8Array;
  readonly messages: readonly Pick<NetlinkRequest, 'sequence'>[];
}

/** Errors of an exchange, in the words of its user. */
export interface ExchangeErrors {
  /** The exchange was disposed. */
  closed(): Error;
  /** A list changed during each of `attempts` dumps. */
  changing(attempts: number): Error;
  /** The kernel sent no answer to a request: its effect is unknown. */
  noAnswer(): Error;
}

/** A dump and what is made of it. */
export interface NetlinkDump {
  /** Makes a new request, with a number of its own. */
  makeRequest(): NetlinkRequest;
  readonly visit: VisitMessage;
  /** Discards the visited messages; called before each attempt. */
  restart(): void;
}

/** Requests and answers over one socket, opened again after a failure. The caller sends one request at a time. */
export class NetlinkExchange implements Disposable {
  readonly #open: () => NetlinkSocket;
  readonly #errors: ExchangeErrors;
  readonly #buffer = new Uint8Array(bufferSize);
  #socket: NetlinkSocket | undefined;
  #isClosed = false;

  /** The constructor calls `open` and throws its error. */
  constructor(open: () => NetlinkSocket, errors: ExchangeErrors) {
    this.#open = open;
    this.#errors = errors;
    this.#socket = open();
  }

  /** Sends messages, the last with NLM_F_ACK. Returns the first refusal, undefined when all were taken. */
  batch({ bytes, messages }: NetlinkBatch): KernelAnswer | undefined {
    const last = messages.at(-1);
    if (last === undefined) return undefined;
    return this.#guarded(() => {
      const socket = this.#opened();
      socket.send(bytes);
      let isTaken = false;
      let refusal: KernelAnswer | undefined;
      for (const [message, datagram] of receiveAnswers(socket, this.#buffer)) {
        if (message.type !== NLMSG.ERROR) continue;
        const answer = readAnswer(datagram, message);
        if (answer.errno !== 0) refusal ??= answer;
        else if (answer.sequence === last.sequence) isTaken = true;
      }
      if (refusal === undefined && !isTaken) throw this.#errors.noAnswer();
      return refusal;
    });
  }

  /** Sends a request with NLM_F_ACK that any number of messages answer, all given to `visit`. Returns an errno, or 0. */
  request({ bytes, sequence }: NetlinkRequest, visit: VisitMessage): number {
    return this.#guarded(() => {
      const socket = this.#opened();
      socket.send(bytes);
      for (const [message, datagram] of receiveAnswers(socket, this.#buffer)) {
        if (message.sequence !== sequence) continue;
        if (message.type === NLMSG.ERROR) return readAnswer(datagram, message).errno;
        visit(datagram, message);
      }
      throw this.#errors.noAnswer();
    });
  }

  /** Reads a whole dump. Returns an errno, or 0. Starts again when the table changed during the dump. */
  async dump(dump: NetlinkDump, signal: AbortSignal): Promise<number> {
    for (let attempt = 0; attempt < dumpAttempts; attempt++) {
      dump.restart();
      const result = await this.#dumpOnce(dump, signal).catch((error: unknown) => {
        this.#drop(); // the rest of the dump may still come
        throw error;
      });
      if (result !== 'interrupted') return result;
      await setImmediate();
    }
    throw this.#errors.changing(dumpAttempts);
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#drop();
  }

  async #dumpOnce({ makeRequest, visit }: NetlinkDump, signal: AbortSignal): Promise<number | 'interrupted'> {
    const socket = this.#opened();
    const sent = makeRequest();
    socket.send(sent.bytes);
    let isInterrupted = false;
    for (let datagrams = 1; ; datagrams++) {
      const length = socket.receive(this.#buffer);
      if (length === undefined) throw this.#errors.noAnswer();
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

  #guarded<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      this.#drop();
      throw error;
    }
  }

  #opened(): NetlinkSocket {
    if (this.#isClosed) throw this.#errors.closed();
    this.#socket ??= this.#open();
    return this.#socket;
  }

  #drop(): void {
    this.#socket?.[Symbol.dispose]();
    this.#socket = undefined;
  }
}

/** The errno that ends a dump, 0 for its proper end; undefined while it continues. */
function endOf(bytes: Uint8Array, message: NetlinkMessage): number | undefined {
  if (message.type === NLMSG.ERROR) return readAnswer(bytes, message).errno;
  if (message.type !== NLMSG.DONE) return undefined;
  return message.end - message.start >= 4 ? readErrno(bytes, message.start) : 0;
}

/** Queued messages with their datagram, valid until the next: the kernel answers before `send` returns. */
export function* receiveAnswers(
  socket: Pick<NetlinkSocket, 'receive'>,
  buffer: Uint8Array = new Uint8Array(bufferSize),
): Generator<readonly [NetlinkMessage, Uint8Array], undefined, unknown> {
  for (let length = socket.receive(buffer); length !== undefined; length = socket.receive(buffer)) {
    const datagram = buffer.subarray(0, length);
    for (const message of readMessages(datagram)) yield [message, datagram];
  }
  return undefined;
}

/** Answer of the kernel to one message: an acknowledgement or a refusal. */
export interface KernelAnswer {
  /** Positive; 0: taken. */
  readonly errno: number;
  readonly sequence: number;
  /** Offset of the attribute at fault in that message; undefined when the kernel does not name one. */
  readonly offset: number | undefined;
  /** The kernel's own words, which are rare. */
  readonly text: string | undefined;
}

/** Reads an NLMSG_ERROR. */
export function readAnswer(bytes: Uint8Array, { start, end, flags, sequence }: NetlinkMessage): KernelAnswer {
  const errno = readErrno(bytes, start);
  let offset: number | undefined;
  let text: string | undefined;
  // The request's header follows without its content: the socket has NETLINK_CAP_ACK.
  const attributes = start + 4 + messageHeaderLength;
  if ((flags & NLM_F.ACK_TLVS) !== 0 && attributes <= end) {
    for (const attribute of readAttributes(bytes, attributes, end)) {
      if (attribute.type === NLMSGERR.OFFS) offset = readUint32(bytes, attribute.start);
      if (attribute.type === NLMSGERR.MSG) text = readText(bytes, attribute.start, attribute.end);
    }
  }
  return { errno, sequence, offset, text };
}
