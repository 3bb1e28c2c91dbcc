import { createHash } from 'node:crypto';
import { constants } from 'node:os';
import { HostError } from '@switchyard/core';
import {
  MessageWriter,
  NativeError,
  type NetlinkMessage,
  type NetlinkSocket,
  NLM_F,
  NLMSG,
  readAttributes,
  readErrno,
  readMessages,
  readText,
  readUint32be,
} from '@switchyard/native';

/** The guard table as it is. */
export interface DumpedGuard {
  /** It does nothing, as somebody said `flags dormant`. */
  readonly sleeps: boolean;
  readonly chains: readonly GuardChain[];
}

/** One chain of the guard table with its rules, as the kernel tells them. */
export interface GuardChain {
  readonly name: string;
  /** Hook, policy, type and rules, digested. Counters and handles are not in it. */
  readonly digest: string;
}

/** Requests of nf_tables.h: the subsystem is in the high byte. */
const requests = { getTable: 0xa01, getChain: 0xa04, getRule: 0xa07, getGeneration: 0xa10 } as const;
const familyInet = 1;
const tableAttributes = { name: 1, flags: 2 } as const;
/** Hook, policy, type, flags. */
const chainSettings: ReadonlySet<number> = new Set([4, 5, 7, 10]);
const chainAttributes = { table: 1, name: 3 } as const;
const ruleAttributes = { table: 1, chain: 2, expressions: 4 } as const;
const generationId = 1;
const dormant = 1;
/** Length of `struct nfgenmsg`. */
const headerLength = 4;
/** How often a list is asked for again because somebody changed rules meanwhile. */
const attempts = 10;

/** Reads what nftables holds over a socket that nobody else uses. Throws `HostError` and `NativeError`. */
export class GuardReader {
  readonly #socket: NetlinkSocket;
  readonly #writer = new MessageWriter();
  readonly #buffer = new Uint8Array(1 << 16);
  #sequence = 0;

  constructor(socket: NetlinkSocket) {
    this.#socket = socket;
  }

  /** A number that grows with every change of any table of the network namespace. */
  generation(): number {
    let found = 0;
    this.#ask(requests.getGeneration, 0, () => undefined);
    this.#answers((bytes, message) => {
      this.#refused(bytes, message);
      for (const { type, start } of readAttributes(bytes, message.start + headerLength, message.end)) {
        if (type === generationId) found = readUint32be(bytes, start);
      }
      return true;
    });
    return found;
  }

  /** Undefined when there is no such table. */
  read(table: string): DumpedGuard | undefined {
    const flags = this.#tableFlags(table);
    if (flags === undefined) return undefined;
    const hashes = new Map<string, ReturnType<typeof createHash>>();
    this.#dump(requests.getChain, table, (bytes, { start, end }) => {
      const hash = createHash('sha256');
      let name = '';
      for (const { type, start: from, end: to } of readAttributes(bytes, start + headerLength, end)) {
        if (type === chainAttributes.table && readText(bytes, from, to) !== table) return;
        if (type === chainAttributes.name) name = readText(bytes, from, to);
        if (chainSettings.has(type)) hash.update(bytes.subarray(from, to));
      }
      hashes.set(name, hash);
    });
    this.#dump(requests.getRule, table, (bytes, { start, end }) => {
      let chain = '';
      for (const { type, start: from, end: to } of readAttributes(bytes, start + headerLength, end)) {
        if (type === ruleAttributes.table && readText(bytes, from, to) !== table) return;
        if (type === ruleAttributes.chain) chain = readText(bytes, from, to);
        if (type === ruleAttributes.expressions) hashes.get(chain)?.update(bytes.subarray(from, to));
      }
    });
    const chains = [...hashes].map(([name, hash]) => ({ name, digest: hash.digest('hex') }));
    return { sleeps: (flags & dormant) !== 0, chains };
  }

  #tableFlags(table: string): number | undefined {
    let flags: number | undefined;
    this.#ask(requests.getTable, 0, () => this.#writer.attributeText(tableAttributes.name, table));
    this.#answers((bytes, message) => {
      if (message.type === NLMSG.ERROR && readErrno(bytes, message.start) === constants.errno.ENOENT) return true;
      this.#refused(bytes, message);
      for (const { type, start } of readAttributes(bytes, message.start + headerLength, message.end)) {
        if (type === tableAttributes.flags) flags = readUint32be(bytes, start);
      }
      return true;
    });
    return flags;
  }

  /** Until nobody changed anything while it was read; `take` gets what was read before that once more. */
  #dump(type: number, table: string, take: (bytes: Uint8Array, message: NetlinkMessage) => void): void {
    for (let attempt = 0; attempt < attempts; attempt++) {
      const found: { readonly bytes: Uint8Array; readonly message: NetlinkMessage }[] = [];
      let isWhole = true;
      this.#ask(type, NLM_F.DUMP, () => this.#writer.attributeText(chainAttributes.table, table));
      this.#answers((bytes, message) => {
        if ((message.flags & NLM_F.DUMP_INTR) !== 0) isWhole = false;
        if (message.type === NLMSG.DONE) return true;
        this.#refused(bytes, message);
        const { start, end } = message;
        found.push({ bytes: bytes.slice(start, end), message: { ...message, start: 0, end: end - start } });
        return false;
      });
      if (!isWhole) continue;
      for (const { bytes, message } of found) take(bytes, message);
      return;
    }
    const text = `cannot read table inet ${table}: rules changed during each of ${attempts} attempts; will be tried again`;
    throw new HostError('ebpf.guard.busy', text);
  }

  #ask(type: number, flags: number, attributes: () => void): void {
    const writer = this.#writer;
    writer.clear();
    writer.beginMessage({ type, flags: NLM_F.REQUEST | flags, sequence: ++this.#sequence });
    writer.netfilterHeader(familyInet, 0);
    attributes();
    writer.endMessage();
    this.#socket.send(writer.bytes());
  }

  #answers(take: (bytes: Uint8Array, message: NetlinkMessage) => boolean): void {
    for (;;) {
      const length = this.#socket.receive(this.#buffer);
      if (length === undefined) {
        const text = 'cannot read the rules of the kernel: it ended an answer in the middle; will be tried again';
        throw new HostError('ebpf.guard.noAnswer', text);
      }
      const bytes = this.#buffer.subarray(0, length);
      for (const message of readMessages(bytes)) {
        if (message.sequence === this.#sequence && take(bytes, message)) return;
      }
    }
  }

  #refused(bytes: Uint8Array, message: NetlinkMessage): void {
    const errno = message.type === NLMSG.ERROR ? readErrno(bytes, message.start) : 0;
    if (errno !== 0) throw new NativeError('cannot read the rules of the kernel', { errno, syscall: 'netlink dump' });
  }
}
