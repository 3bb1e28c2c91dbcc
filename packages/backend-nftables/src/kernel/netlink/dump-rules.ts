import { HostError } from '@switchyard/core';
import {
  MessageWriter,
  NativeError,
  type NetlinkMessage,
  type NetlinkSocket,
  readAttributes,
  readMessages,
  readText,
  readUint32be,
  readUint64be,
  NLM_F,
  NLMSG,
  readErrno,
} from '@switchyard/native';
import { constants } from 'node:os';
import { familyInet, NFT_MSG, NFT_SET, NFTA } from './constants.ts';

/** A chain and what was set about it besides its rules: hook, priority, policy, type, flags. Bytes as the kernel tells them. */
export interface DumpedChain {
  readonly name: string;
  readonly settings: Uint8Array;
}

/** A named map or set and how it was declared. */
export interface DumpedSet {
  readonly name: string;
  readonly settings: Uint8Array;
}

/** One rule; those of a chain come in its order. */
export interface DumpedRule {
  readonly chain: string;
  readonly handle: bigint;
  readonly expressions: Uint8Array;
}

/** One element with its key and data, the data empty for a set. */
export interface DumpedElement {
  readonly key: Uint8Array;
  readonly data: Uint8Array;
}

/** Everything of a table but the elements of its maps and sets. */
export interface TableDump {
  /** `NFT_TABLE_F_...`: a dormant table does nothing. */
  readonly flags: number;
  readonly chains: readonly DumpedChain[];
  readonly sets: readonly DumpedSet[];
  readonly rules: readonly DumpedRule[];
}

/** What of a chain its mark covers: no counters, no number of uses, no handle. */
const chainSettings: ReadonlySet<number> = new Set([
  NFTA.CHAIN.HOOK,
  NFTA.CHAIN.POLICY,
  NFTA.CHAIN.TYPE,
  NFTA.CHAIN.FLAGS,
]);
/** Flags, key and data types and lengths, policy, size, timeout, interval of collection, object type, expressions. */
const setSettings: ReadonlySet<number> = new Set([3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 17, 18]);

/** Somebody changed the rules while they were read, every time. */
const attempts = 10;

/**
 * While a hash table grows, for milliseconds after many elements were added, the kernel lists some of its elements twice
 * and as many not at all. A list without doubles is complete.
 */
const maxReads = 100;

/**
 * Reads rules of `inet` tables over a socket that nobody else uses meanwhile. Methods throw `HostError`; then answers may
 * be left in the socket, which is of no further use.
 */
export class RulesReader {
  readonly #socket: NetlinkSocket;
  readonly #writer = new MessageWriter();
  readonly #buffer = new Uint8Array(1 << 17);
  #sequence = 0;

  constructor(socket: NetlinkSocket) {
    this.#socket = socket;
  }

  /** Undefined when there is no such table. */
  read(table: string): TableDump | undefined {
    const flags = this.#flags(table);
    if (flags === undefined) return undefined;
    return { flags, chains: this.chains(table), sets: this.#sets(table), rules: this.rules(table) };
  }

  /** The rules of a table, or of one of its chains, in order. Empty when there is no such table or chain. */
  rules(table: string, chain?: string): readonly DumpedRule[] {
    const ask = (): void => {
      this.#writer.attributeText(NFTA.RULE.TABLE, table);
      if (chain !== undefined) this.#writer.attributeText(NFTA.RULE.CHAIN, chain);
    };
    return this.#collect(NFT_MSG.GETRULE, ask, (bytes, { start, end }) => {
      const rule = { chain: '', handle: 0n, expressions: new Uint8Array(0) };
      for (const { type, start: from, end: to } of readAttributes(bytes, start + 4, end)) {
        if (type === NFTA.RULE.TABLE && readText(bytes, from, to) !== table) return undefined;
        if (type === NFTA.RULE.CHAIN) rule.chain = readText(bytes, from, to);
        if (type === NFTA.RULE.HANDLE) rule.handle = readUint64be(bytes, from);
        if (type === NFTA.RULE.EXPRESSIONS) rule.expressions = bytes.slice(from, to);
      }
      return chain === undefined || rule.chain === chain ? rule : undefined;
    });
  }

  /** The elements of a small map or set; undefined when there is none of this name. */
  elements(table: string, set: string): readonly DumpedElement[] | undefined {
    const ask = (): void => {
      this.#writer.attributeText(NFTA.ELEM_LIST.TABLE, table);
      this.#writer.attributeText(NFTA.ELEM_LIST.SET, set);
    };
    const read = (bytes: Uint8Array, { start, end }: NetlinkMessage): readonly DumpedElement[] =>
      readElementList(bytes, start + 4, end);
    try {
      for (let reads = 0; reads < maxReads; reads++) {
        const found = this.#collect(NFT_MSG.GETSETELEM, ask, read).flat();
        const keys = new Set(found.map(({ key }) => Buffer.from(key).toString('latin1')));
        if (keys.size === found.length) return found;
      }
      throw busy(maxReads);
    } catch (error) {
      if (error instanceof NativeError && error.errno === constants.errno.ENOENT) return undefined;
      throw error;
    }
  }

  /** The chains of a table, in no order. */
  chains(table: string): readonly DumpedChain[] {
    return this.#named(NFT_MSG.GETCHAIN, { table, attribute: NFTA.CHAIN, settings: chainSettings });
  }

  #sets(table: string): readonly DumpedSet[] {
    return this.#named(NFT_MSG.GETSET, { table, attribute: NFTA.SET, settings: setSettings });
  }

  #named(type: number, what: Named): readonly DumpedChain[] {
    const ask = (): void => this.#writer.attributeText(what.attribute.TABLE, what.table);
    return this.#collect(type, ask, (bytes, { start, end }) => readNamed(bytes, { start: start + 4, end }, what));
  }

  #flags(table: string): number | undefined {
    let flags: number | undefined;
    this.#ask(NFT_MSG.GETTABLE, NLM_F.REQUEST, () => this.#writer.attributeText(NFTA.TABLE.NAME, table));
    this.#answers((bytes, message) => {
      if (isMissing(bytes, message)) return true;
      this.#refused(bytes, message);
      for (const { type, start } of readAttributes(bytes, message.start + 4, message.end)) {
        if (type === NFTA.TABLE.FLAGS) flags = readUint32be(bytes, start);
      }
      return true;
    });
    return flags;
  }

  /** One dump, again and again until nobody changed anything meanwhile. */
  #collect<T>(
    type: number,
    ask: () => void,
    read: (bytes: Uint8Array, message: NetlinkMessage) => T | undefined,
  ): readonly T[] {
    for (let attempt = 0; attempt < attempts; attempt++) {
      const found: T[] = [];
      let isWhole = true;
      this.#ask(type, NLM_F.REQUEST | NLM_F.DUMP, ask);
      this.#answers((bytes, message) => {
        if ((message.flags & NLM_F.DUMP_INTR) !== 0) isWhole = false;
        if (message.type === NLMSG.DONE) return true;
        this.#refused(bytes, message);
        const item = read(bytes, message);
        if (item !== undefined) found.push(item);
        return false;
      });
      if (isWhole) return found;
    }
    throw busy(attempts);
  }

  #ask(type: number, flags: number, attributes: () => void): void {
    const writer = this.#writer;
    writer.clear();
    writer.beginMessage({ type, flags, sequence: ++this.#sequence });
    writer.netfilterHeader(familyInet, 0);
    attributes();
    writer.endMessage();
    this.#socket.send(writer.bytes());
  }

  /** Passes on what answers the last question until `take` has enough. What is left of older answers is skipped. */
  #answers(take: (bytes: Uint8Array, message: NetlinkMessage) => boolean): void {
    for (;;) {
      const length = this.#socket.receive(this.#buffer);
      if (length === undefined) throw brokenOff();
      const bytes = this.#buffer.subarray(0, length);
      for (const message of readMessages(bytes)) {
        if (message.sequence === this.#sequence && take(bytes, message)) return;
      }
    }
  }

  #refused(bytes: Uint8Array, message: NetlinkMessage): void {
    const errno = errorOf(bytes, message);
    if (errno !== 0) throw new NativeError('cannot read the rules of the kernel', { errno, syscall: 'netlink dump' });
  }
}

function brokenOff(): HostError {
  const message = 'cannot read the rules: the kernel ended an answer in the middle; will be tried again';
  return new HostError('nftables.noAnswer', message);
}

function busy(count: number): HostError {
  const message = `cannot read the rules: they changed during each of ${count} attempts; will be tried again`;
  return new HostError('nftables.busy', message);
}

interface Named {
  readonly table: string;
  readonly attribute: { readonly TABLE: number; readonly NAME: number; readonly FLAGS: number };
  readonly settings: ReadonlySet<number>;
}

interface Range {
  readonly start: number;
  readonly end: number;
}

/** Undefined for what belongs to another table, and for the unnamed sets within rules: nobody can change them. */
function readNamed(bytes: Uint8Array, range: Range, what: Named): DumpedChain | undefined {
  let name = '';
  let flags = 0;
  const settings: Uint8Array[] = [];
  for (const { type, start, end } of readAttributes(bytes, range.start, range.end)) {
    if (type === what.attribute.TABLE && readText(bytes, start, end) !== what.table) return undefined;
    if (type === what.attribute.NAME) name = readText(bytes, start, end);
    if (type === what.attribute.FLAGS) flags = readUint32be(bytes, start);
    if (what.settings.has(type)) settings.push(Uint8Array.of(type), bytes.slice(start, end));
  }
  const isUnnamed = what.attribute === NFTA.SET && (flags & NFT_SET.ANONYMOUS) !== 0;
  return isUnnamed ? undefined : { name, settings: Buffer.concat(settings) };
}

function readElementList(bytes: Uint8Array, from: number, to: number): readonly DumpedElement[] {
  const found: DumpedElement[] = [];
  for (const { type, start, end } of readAttributes(bytes, from, to)) {
    if (type !== NFTA.ELEM_LIST.ELEMENTS) continue;
    for (const item of readAttributes(bytes, start, end)) {
      const element = { key: new Uint8Array(0), data: new Uint8Array(0) };
      for (const part of readAttributes(bytes, item.start, item.end)) {
        if (part.type === NFTA.ELEM.KEY) element.key = bytes.slice(part.start, part.end);
        if (part.type === NFTA.ELEM.DATA) element.data = bytes.slice(part.start, part.end);
      }
      found.push(element);
    }
  }
  return found;
}

function isMissing(bytes: Uint8Array, message: NetlinkMessage): boolean {
  return errorOf(bytes, message) === constants.errno.ENOENT;
}

function errorOf(bytes: Uint8Array, { type, start }: NetlinkMessage): number {
  return type === NLMSG.ERROR ? readErrno(bytes, start) : 0;
}
