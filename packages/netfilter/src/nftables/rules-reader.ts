import { HostError } from '@switchyard/core';
import {
  type AskerTexts,
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
import { familyNumbers, NFT_MSG, NFT_SET, NFTA } from './constants.ts';

/** The family of a table, as nft spells it. */
export type TableFamily = keyof typeof familyNumbers;

/** A chain, named map or named set with the attributes that declare it, as the kernel reports them. */
export interface DumpedObject {
  readonly name: string;
  /** Of a chain: hook, priority, policy, type, flags. */
  readonly settings: readonly (readonly [type: number, value: Uint8Array])[];
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

/** No counters, no number of uses, no handle. */
const chainSettings: ReadonlySet<number> = new Set([
  NFTA.CHAIN.HOOK,
  NFTA.CHAIN.POLICY,
  NFTA.CHAIN.TYPE,
  NFTA.CHAIN.FLAGS,
]);
/** Flags, key and data types and lengths, policy, size, timeout, interval of collection, object type, expressions. */
const setSettings: ReadonlySet<number> = new Set([3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 17, 18]);

/** Length of `struct nfgenmsg`. */
const headerLength = 4;
const { ENOENT } = constants.errno;

/** While a hash table grows, the kernel lists some elements twice and as many not at all. A list without doubles is complete. */
const maxReads = 100;

/** Reads rules over a socket of its own. Throws `HostError`; the caller must close the socket then. */
export class RulesReader {
  readonly #asker: NetlinkAsker;
  readonly #texts: AskerTexts;
  readonly #family: number;

  constructor(socket: NetlinkSocket, texts: AskerTexts, family: TableFamily = 'inet') {
    this.#asker = new NetlinkAsker(socket, texts);
    this.#texts = texts;
    this.#family = familyNumbers[family];
  }

  /** Number of the rule generation, which grows with each change of any table of the network namespace. */
  generation(): number {
    return this.#asker.get(NFT_MSG.GETGEN, this.#body([]), { read: numberOf(NFTA.GENERATION.ID) }) ?? 0;
  }

  /** Undefined when there is no such table. */
  read(table: string): TableDump | undefined {
    const flags = this.flags(table);
    if (flags === undefined) return undefined;
    return { flags, chains: this.chains(table), sets: this.#sets(table), rules: this.rules(table) };
  }

  /** `NFT_TABLE_F_...`; undefined when there is no such table. */
  flags(table: string): number | undefined {
    const isAbsent = (errno: number): boolean => errno === ENOENT;
    return this.#asker.get(NFT_MSG.GETTABLE, this.#body([[NFTA.TABLE.NAME, table]]), {
      read: numberOf(NFTA.TABLE.FLAGS),
      isAbsent,
    });
  }

  /** Names of all tables. */
  tables(): readonly string[] {
    const tables = this.#named(NFT_MSG.GETTABLE, { attribute: { ...NFTA.TABLE, TABLE: -1 }, settings: new Set() });
    return tables.map(({ name }) => name);
  }

  /** The rules of a table, or of one of its chains, in order. Empty when there is no such table or chain. */
  rules(table: string, chain?: string): readonly DumpedRule[] {
    const ofChain = chain === undefined ? [] : [[NFTA.RULE.CHAIN, chain] as const];
    const body = this.#body([[NFTA.RULE.TABLE, table], ...ofChain]);
    return this.#asker.dump(NFT_MSG.GETRULE, body, (bytes, { start, end }) => {
      const rule = { chain: '', handle: 0n, expressions: new Uint8Array(0) };
      for (const { type, start: from, end: to } of readAttributes(bytes, start + headerLength, end)) {
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
    const body = this.#body([
      [NFTA.ELEM_LIST.TABLE, table],
      [NFTA.ELEM_LIST.SET, set],
    ]);
    try {
      for (let reads = 0; reads < maxReads; reads++) {
        const found = this.#asker.dump(NFT_MSG.GETSETELEM, body, readElementList).flat();
        const keys = new Set(found.map(({ key }) => Buffer.from(key).toString('latin1')));
        if (keys.size === found.length) return found;
      }
    } catch (error) {
      if (error instanceof NativeError && error.errno === ENOENT) return undefined;
      throw error;
    }
    const { attempt, code } = this.#texts;
    const message = `${attempt}: they changed during each of ${maxReads} attempts; will be tried again`;
    throw new HostError(`${code}.busy`, message);
  }

  /** The chains of a table, in no order. */
  chains(table: string): readonly DumpedObject[] {
    return this.#named(NFT_MSG.GETCHAIN, { table, attribute: NFTA.CHAIN, settings: chainSettings });
  }

  #sets(table: string): readonly DumpedObject[] {
    return this.#named(NFT_MSG.GETSET, { table, attribute: NFTA.SET, settings: setSettings });
  }

  #named(type: number, what: Named): readonly DumpedObject[] {
    const body = this.#body(what.table === undefined ? [] : [[what.attribute.TABLE, what.table]]);
    return this.#asker.dump(type, body, (bytes, message) => readNamed(bytes, message, what));
  }

  #body(texts: readonly (readonly [attribute: number, text: string])[]): WriteBody {
    return (writer) => {
      writer.netfilterHeader(this.#family, 0);
      for (const [attribute, text] of texts) writer.attributeText(attribute, text);
    };
  }
}

interface Named {
  /** Undefined: objects of all tables. */
  readonly table?: string;
  readonly attribute: { readonly TABLE: number; readonly NAME: number; readonly FLAGS: number };
  readonly settings: ReadonlySet<number>;
}

/** Undefined for objects of other tables, and for the unnamed sets within rules, which cannot be changed. */
function readNamed(bytes: Uint8Array, message: NetlinkMessage, what: Named): DumpedObject | undefined {
  let name = '';
  let flags = 0;
  const settings: (readonly [number, Uint8Array])[] = [];
  for (const { type, start, end } of readAttributes(bytes, message.start + headerLength, message.end)) {
    // Older kernels list the chains of all tables.
    if (type === what.attribute.TABLE && readText(bytes, start, end) !== what.table) return undefined;
    if (type === what.attribute.NAME) name = readText(bytes, start, end);
    if (type === what.attribute.FLAGS) flags = readUint32be(bytes, start);
    if (what.settings.has(type)) settings.push([type, bytes.slice(start, end)]);
  }
  const isUnnamed = what.attribute === NFTA.SET && (flags & NFT_SET.ANONYMOUS) !== 0;
  return isUnnamed ? undefined : { name, settings };
}

function readElementList(bytes: Uint8Array, message: NetlinkMessage): readonly DumpedElement[] {
  const found: DumpedElement[] = [];
  for (const { type, start, end } of readAttributes(bytes, message.start + headerLength, message.end)) {
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

/** Reads a number; undefined if the attribute is absent. */
function numberOf(attribute: number): (bytes: Uint8Array, message: NetlinkMessage) => number | undefined {
  return (bytes, { start, end }) => {
    for (const { type, start: from } of readAttributes(bytes, start + headerLength, end)) {
      if (type === attribute) return readUint32be(bytes, from);
    }
    return undefined;
  };
}
