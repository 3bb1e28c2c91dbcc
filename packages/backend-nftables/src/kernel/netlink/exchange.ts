import { HostError, assertNever } from '@switchyard/core';
import {
  NLMSG,
  NLM_F,
  NativeError,
  type NetlinkMessage,
  type NetlinkSocket,
  errnoName,
  messageHeaderLength,
  readAttributes,
  readErrno,
  readMessages,
  readText,
  readUint32,
} from '@switchyard/native';
import { setImmediate } from 'node:timers/promises';
import { NFTA, NLMSGERR } from './constants.ts';
import type { EncodedBatch, Sent, SentMessage } from './encode-batch.ts';
import { NftError, type NftRefusal } from '../nft-error.ts';
import { chainName } from '../../render/class-chains.ts';
import { type Change, splitElementId } from '../../render/elements.ts';

/** Larger than any datagram that the kernel makes for a dump (32 KiB). */
const bufferSize = 1 << 16;
/** Datagrams of a dump between two turns of the event loop: about a millisecond of work. */
const datagramsPerTurn = 4;
/** Attempts at a dump before it fails because the table changes. */
const dumpAttempts = 10;

/** Visits the messages of a dump; called between turns of the event loop. */
export type VisitMessage = (bytes: Uint8Array, message: NetlinkMessage) => void;

/** A dump and what is made of it. */
export interface Dump {
  /** Makes a new request, with a number of its own. */
  makeRequest(): Sent;
  readonly visit: VisitMessage;
  /** Discards the visited messages; called before each attempt. */
  restart(): void;
}

/**
 * Requests and their answers over one socket. It is opened at once, and again after a failure that may have
 * left answers in it. The caller must send one request at a time.
 */
export class Exchange implements Disposable {
  readonly #open: () => NetlinkSocket;
  readonly #buffer = new Uint8Array(bufferSize);
  #socket: NetlinkSocket | undefined;
  #isClosed = false;

  /** The constructor calls `open` and throws its error. */
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

  /** Reads a whole dump. Returns an errno, or 0. Starts again when the table changed during the dump. */
  async dump(dump: Dump, signal: AbortSignal): Promise<number> {
    for (let attempt = 0; attempt < dumpAttempts; attempt++) {
      dump.restart();
      const result = await this.#dumpOnce(dump, signal).catch((error: unknown) => {
        this.#drop(); // the rest of the dump may still come
        throw error;
      });
      if (result !== 'interrupted') return result;
      await setImmediate();
    }
    throw new HostError(
      'nftables.dump',
      `cannot read our own nft table: it changed during each of ${dumpAttempts} attempts; will be tried again`,
    );
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#drop();
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

  /** All queued messages. The kernel queues answers before `send` returns, so no more will follow. */
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

/** The errno that ends a dump, 0 for its proper end; undefined while it continues. */
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
    'unknown whether the kernel took a request to nftables: it did not answer; the table will be read back',
  );
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

/** A batch, and the changes it was encoded from. */
export interface Attempted {
  readonly attempt: string;
  readonly table: string;
  readonly batch: EncodedBatch;
  /** Empty for a batch of other things than changes. */
  readonly changes: readonly Change[];
}

/** The refusal of a batch in words, with the change at fault where the kernel pointed at it. */
export function explainRefusal(answer: KernelAnswer, attempted: Attempted): NftError {
  const { attempt, table, batch, changes } = attempted;
  const message = batch.messages.find(({ sequence }) => sequence === answer.sequence);
  const fault = message === undefined ? undefined : findFault(answer, message, batch.bytes);
  const change = fault?.kind === 'element' ? changes[fault.change] : undefined;
  const what = faultText(fault, change, table);
  const said = answer.text === undefined ? '' : `; kernel message: ${answer.text}`;
  return new NftError(
    `${attempt}: the kernel answered ${errnoName(answer.errno)}${what}: ${meaningOf(answer.errno, fault)}${said}; ` +
      'nothing of it took effect',
    { refusal: refusalOf(answer.errno), change },
  );
}

/** The object or element at fault. */
type Fault =
  | { readonly kind: 'element'; readonly change: number; readonly object: string | undefined }
  | { readonly kind: 'object'; readonly object: string | undefined }
  | { readonly kind: 'table' };

function findFault({ offset }: KernelAnswer, message: SentMessage, batch: Uint8Array): Fault {
  const { object, firstChange, isPerElement } = message;
  if (offset === undefined) return { kind: 'object', object };
  const start = message.offset + messageHeaderLength + 4;
  const end = message.offset + readUint32(batch, message.offset);
  const target = message.offset + offset;
  for (const attribute of readAttributes(batch, start, end)) {
    if (target >= attribute.end) continue;
    if (attribute.type === NFTA.ELEM_LIST.TABLE) return { kind: 'table' };
    if (attribute.type !== NFTA.ELEM_LIST.ELEMENTS || target < attribute.start) return { kind: 'object', object };
    if (!isPerElement) return { kind: 'element', change: firstChange, object };
    let change = firstChange;
    for (const element of readAttributes(batch, attribute.start, attribute.end)) {
      if (target < element.end) break;
      change++;
    }
    return { kind: 'element', change, object };
  }
  return { kind: 'object', object };
}

function faultText(fault: Fault | undefined, change: Change | undefined, table: string): string {
  switch (fault?.kind) {
    case undefined:
      return ''; // about the batch as a whole
    case 'table':
      return ` about table inet ${table}`;
    case 'object':
      return ` about ${fault.object ?? 'an object'} of table inet ${table}`;
    case 'element':
      return ` when it was to ${change === undefined ? `change ${fault.object}` : changeText(change)}`;
  }
}

function changeText(change: Change): string {
  switch (change.kind) {
    case 'add':
    case 'delete': {
      const { object, key } = splitElementId(change.id);
      if (change.kind === 'delete') return `delete ${key} from ${object}`;
      return `add ${key}${change.data === '' ? '' : ` : ${change.data}`} to ${object}`;
    }
    case 'replace':
      return `put ${change.content.join(', ')} into ${change.object}`;
    case 'class':
      return `add chain ${chainName(change.chain, change.suffix)}`;
    default:
      return assertNever(change);
  }
}

const refusals: Readonly<Record<string, NftRefusal>> = {
  EPERM: 'permission',
  EACCES: 'permission',
  EEXIST: 'exists',
  ENOENT: 'missing',
};

function refusalOf(errno: number): NftRefusal {
  return refusals[errnoName(errno)] ?? 'other';
}

const meanings: Readonly<Record<string, string>> = {
  EPERM: 'it is not allowed; run as root or with CAP_NET_ADMIN',
  EACCES: 'it is not allowed; run as root or with CAP_NET_ADMIN',
  EEXIST: 'it conflicts with an existing one',
  ENOENT: 'it does not exist',
  ENFILE: 'it is full; make it larger',
  ENOSPC: 'it is full; make it larger',
  ENOMEM: 'the kernel has no memory for it',
  EINVAL: 'it does not fit the existing objects; another build may have made the table',
  EBUSY: 'it is in use',
  EMLINK: 'the chains would form a loop',
};

function meaningOf(errno: number, fault: Fault | undefined): string {
  const name = errnoName(errno);
  if (name === 'ENOENT' && fault?.kind === 'table') return 'there is no such table';
  return meanings[name] ?? 'this is unexpected';
}

/** The refusal of a request that only reads. */
export function refusedRead(attempt: string, errno: number): NftError {
  const message = `${attempt}: the kernel answered ${errnoName(errno)}: ${meaningOf(errno, undefined)}; will be tried again`;
  return new NftError(message, { refusal: refusalOf(errno) });
}
