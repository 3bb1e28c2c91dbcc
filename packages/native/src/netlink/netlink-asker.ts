import { HostError } from '@switchyard/core';
import { NativeError } from '../native-error.ts';
import type { NetlinkSocket } from '../netlink-socket.ts';
import { NLM_F, NLMSG } from './constants.ts';
import { MessageWriter } from './message-writer.ts';
import { receiveAnswers, type VisitMessage } from './netlink-exchange.ts';
import { type NetlinkMessage, readErrno } from './read-messages.ts';

/** Texts of an asker's errors. */
export interface AskerTexts {
  /** The attempt and its object: "cannot list ...". */
  readonly attempt: string;
  /** Prefix of the codes of its errors. */
  readonly code: string;
}

/** Writes what follows a message's header. */
export type WriteBody = (writer: MessageWriter) => void;

/** Attempts to read a list that changes while it is read. */
const attempts = 10;

/** Sends requests over a netlink socket of its own, one at a time, and reads the answers. Throws `NativeError` and `HostError`. */
export class NetlinkAsker {
  readonly #socket: NetlinkSocket;
  readonly #texts: AskerTexts;
  readonly #writer = new MessageWriter();
  readonly #buffer = new Uint8Array(1 << 16);
  #sequence = 0;

  constructor(socket: NetlinkSocket, texts: AskerTexts) {
    this.#socket = socket;
    this.#texts = texts;
  }

  /** Returns a consistent list: the results of `read` for each item, except undefined ones. */
  dump<T>(
    type: number,
    body: WriteBody,
    read: (bytes: Uint8Array, message: NetlinkMessage) => T | undefined,
  ): readonly T[] {
    for (let attempt = 0; attempt < attempts; attempt++) {
      const found: T[] = [];
      let isWhole = true;
      this.#send(type, NLM_F.DUMP, body);
      this.#receive((bytes, message) => {
        if ((message.flags & NLM_F.DUMP_INTR) !== 0) isWhole = false;
        if (message.type === NLMSG.DONE) return true;
        this.#check(errnoOf(bytes, message));
        const item = read(bytes, message);
        if (item !== undefined) found.push(item);
        return false;
      });
      if (isWhole) return found;
    }
    const { attempt, code } = this.#texts;
    const text = `${attempt}: something changed during each of ${attempts} attempts; will be tried again`;
    throw new HostError(`${code}.busy`, text);
  }

  /** Returns the result of `read` for the one answer; undefined when the kernel refuses with an errno that `isAbsent` accepts. */
  get<T>(
    type: number,
    body: WriteBody,
    {
      read,
      isAbsent = () => false,
    }: {
      readonly read: (bytes: Uint8Array, message: NetlinkMessage) => T;
      readonly isAbsent?: (errno: number) => boolean;
    },
  ): T | undefined {
    let found: T | undefined;
    this.#send(type, 0, body);
    this.#receive((bytes, message) => {
      const errno = errnoOf(bytes, message);
      if (isAbsent(errno)) return true;
      this.#check(errno);
      found = read(bytes, message);
      return true;
    });
    return found;
  }

  /** Returns the errno of the acknowledgement, 0 for success; `read` receives the messages before it. */
  acknowledge(type: number, flags: number, body: WriteBody, read: VisitMessage = () => undefined): number {
    let errno = 0;
    this.#send(type, NLM_F.ACK | flags, body);
    this.#receive((bytes, message) => {
      const isEnd = message.type === NLMSG.ERROR;
      if (isEnd) errno = readErrno(bytes, message.start);
      else read(bytes, message);
      return isEnd;
    });
    return errno;
  }

  #send(type: number, flags: number, body: WriteBody): void {
    const writer = this.#writer;
    writer.clear();
    writer.beginMessage({ type, flags: NLM_F.REQUEST | flags, sequence: ++this.#sequence });
    body(writer);
    writer.endMessage();
    this.#socket.send(writer.bytes());
  }

  /** Reads messages until `take` returns true. */
  #receive(take: (bytes: Uint8Array, message: NetlinkMessage) => boolean): void {
    for (const [message, bytes] of receiveAnswers(this.#socket, this.#buffer)) {
      if (message.sequence === this.#sequence && take(bytes, message)) return;
    }
    const { attempt, code } = this.#texts;
    throw new HostError(
      `${code}.unfinished`,
      `${attempt}: the kernel ended an answer in the middle; will be tried again`,
    );
  }

  #check(errno: number): void {
    if (errno !== 0) throw new NativeError(this.#texts.attempt, { errno, syscall: 'netlink' });
  }
}

function errnoOf(bytes: Uint8Array, { type, start }: NetlinkMessage): number {
  return type === NLMSG.ERROR ? readErrno(bytes, start) : 0;
}
