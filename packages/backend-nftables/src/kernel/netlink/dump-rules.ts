import { HostError } from '@switchyard/core';
import {
  NativeError,
  NetlinkAsker,
  type NetlinkMessage,
  type NetlinkSocket,
  readAttributes,
  readText,
  readUint32be,
  readUint64be,
  type WriteBody,
} from '@switchyard/native';
import { constants } from 'node:os';
import { familyInet, NFT_MSG, NFT_SET, NFTA } from './constants.ts';

/**
 * A chain with its settings (hook, priority, policy, type, flags), or a named map or set with its declaration. Bytes as
 * the kernel reports them.
 */
export interface DumpedObject {
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

/** A table without the elements of its maps and sets. */
export interface TableDump {
  /** `NFT_TABLE_F_...`: a dormant table does nothing. */
  readonly flags: number;
  readonly chains: readonly DumpedObject[];
  readonly sets: readonly DumpedObject[];
  readonly rules: readonly DumpedRule[];
}

/** Chain attributes included in its mark: no counters, no number of uses, no handle. */
const chainSettings: ReadonlySet<number> = new Set([
  NFTA.CHAIN.HOOK,
  NFTA.CHAIN.POLICY,
  NFTA.CHAIN.TYPE,
  NFTA.CHAIN.FLAGS,
]);
/** Flags, key and data types and lengths, policy, size, timeout, interval of collection, object type, expressions. */
const setSettings: ReadonlySet<number> = new Set([3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 17, 18]);

const attempt = 'cannot read the rules';
const { ENOENT } = constants.errno;

/**
 * While a hash table grows, for milliseconds after many elements were added, the kernel lists some of its elements twice
 * and as many not at all. A list without doubles is complete.
 */
const maxReads = 100;

/**
 * Reads rules of `inet` tables over a socket that it does not share. Methods throw `HostError`; then answers may
 * be left in the socket, and the caller must close it.
 */
export class RulesReader {
  readonly #asker: NetlinkAsker;

  constructor(socket: NetlinkSocket) {
    this.#asker = new NetlinkAsker(socket, { attempt, code: 'nftables' });
  }

  /** Undefined when there is no such table. */
  read(table: string): TableDump | undefined {
    const flags = this.#flags(table);
    if (flags === undefined) return undefined;
    return { flags, chains: this.chains(table), sets: this.#sets(table), rules: this.rules(table) };
  }

  /** The rules of a table, or of one of its chains, in order. Empty when there is no such table or chain. */
  rules(table: string, chain?: string): readonly DumpedRule[] {
    const body = bodyOf((writer) => {
      writer.attributeText(NFTA.RULE.TABLE, table);
      if (chain !== undefined) writer.attributeText(NFTA.RULE.CHAIN, chain);
    });
    return this.#asker.dump(NFT_MSG.GETRULE, body, (bytes, { start, end }) => {
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
    const body = bodyOf((writer) => {
      writer.attributeText(NFTA.ELEM_LIST.TABLE, table);
      writer.attributeText(NFTA.ELEM_LIST.SET, set);
    });
    const read = (bytes: Uint8Array, { start, end }: NetlinkMessage): readonly DumpedElement[] =>
      readElementList(bytes, start + 4, end);
    try {
      for (let reads = 0; reads < maxReads; reads++) {
        const found = this.#asker.dump(NFT_MSG.GETSETELEM, body, read).flat();
        const keys = new Set(found.map(({ key }) => Buffer.from(key).toString('latin1')));
        if (keys.size === found.length) return found;
      }
    } catch (error) {
      if (error instanceof NativeError && error.errno === ENOENT) return undefined;
      throw error;
    }
    throw new HostError(
      'nftables.busy',
      `${attempt}: they changed during each of ${maxReads} attempts; will be tried again`,
    );
  }

  /** The chains of a table, in no order. */
  chains(table: string): readonly DumpedObject[] {
    return this.#named(NFT_MSG.GETCHAIN, { table, attribute: NFTA.CHAIN, settings: chainSettings });
  }

  #sets(table: string): readonly DumpedObject[] {
    return this.#named(NFT_MSG.GETSET, { table, attribute: NFTA.SET, settings: setSettings });
  }

  #named(type: number, what: Named): readonly DumpedObject[] {
    const body = bodyOf((writer) => writer.attributeText(what.attribute.TABLE, what.table));
    return this.#asker.dump(type, body, (bytes, { start, end }) => readNamed(bytes, { start: start + 4, end }, what));
  }

  #flags(table: string): number | undefined {
    const body = bodyOf((writer) => writer.attributeText(NFTA.TABLE.NAME, table));
    const read = (bytes: Uint8Array, message: NetlinkMessage): number | undefined => {
      for (const { type, start } of readAttributes(bytes, message.start + 4, message.end)) {
        if (type === NFTA.TABLE.FLAGS) return readUint32be(bytes, start);
      }
      return undefined;
    };
    return this.#asker.get(NFT_MSG.GETTABLE, body, { read, isAbsent: (errno) => errno === ENOENT });
  }
}

function bodyOf(attributes: WriteBody): WriteBody {
  return (writer) => {
    writer.netfilterHeader(familyInet, 0);
    attributes(writer);
  };
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

/** Undefined for objects of other tables, and for the unnamed sets within rules, which cannot be changed. */
function readNamed(bytes: Uint8Array, range: Range, what: Named): DumpedObject | undefined {
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
