import type { Drift, DriftKind } from '@switchyard/core/engine';
import { AttributeCursor, type NetlinkMessage, readAttributes, readText, readUint32be } from '@switchyard/native';
import { NFT_MSG, NFTA } from './constants.ts';

/** A range of bytes; `end` is exclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Reads the notices of nftables. */
export interface NoticeReader {
  /** Reads one message of a datagram. */
  note(bytes: Uint8Array, message: NetlinkMessage): void;
  /** Records that notices did not come: anything may have changed. `what`: in words; default: the kernel dropped some. */
  noteLoss(what?: string): void;
  /** Takes the changes of whole foreign transactions since the last call; undefined if they touched no own object. */
  take(): Drift | undefined;
}

/** Kind and description of each type of notice, by the name of its object. */
export const noticeWords: ReadonlyMap<number, { readonly kind: DriftKind; readonly text: (name: string) => string }> =
  new Map([
    [NFT_MSG.NEWTABLE, { kind: 'table', text: (name) => `table ${name} made or changed` }],
    [NFT_MSG.DELTABLE, { kind: 'table', text: (name) => `table ${name} deleted` }],
    [NFT_MSG.NEWCHAIN, { kind: 'chain', text: (name) => `chain ${name} added or changed` }],
    [NFT_MSG.DELCHAIN, { kind: 'chain', text: (name) => `chain ${name} deleted` }],
    [NFT_MSG.NEWRULE, { kind: 'rule', text: (name) => `rule added to chain ${name}` }],
    [NFT_MSG.DELRULE, { kind: 'rule', text: (name) => `rule of chain ${name} deleted` }],
    [NFT_MSG.NEWSET, { kind: 'set', text: (name) => `set or map ${name} added` }],
    [NFT_MSG.DELSET, { kind: 'set', text: (name) => `set or map ${name} deleted` }],
    [NFT_MSG.NEWSETELEM, { kind: 'element', text: (name) => `added to ${name}` }],
    [NFT_MSG.DELSETELEM, { kind: 'element', text: (name) => `deleted from ${name}` }],
  ]);

const nameAttributes: ReadonlyMap<number, number> = new Map([
  [NFT_MSG.NEWTABLE, NFTA.TABLE.NAME],
  [NFT_MSG.DELTABLE, NFTA.TABLE.NAME],
  [NFT_MSG.NEWCHAIN, NFTA.CHAIN.NAME],
  [NFT_MSG.DELCHAIN, NFTA.CHAIN.NAME],
]);

/** Table of a notice, and the name of its chain, set or table; undefined for tables that `isOurs` refuses. */
export function readNames(
  bytes: Uint8Array,
  { start, end }: ByteRange,
  type: number,
  isOurs: (table: string) => boolean,
): { readonly table: string; readonly name: string } | undefined {
  const nameAttribute = nameAttributes.get(type) ?? NFTA.RULE.CHAIN; // as of sets
  const cursor = new AttributeCursor();
  let table = '';
  cursor.enter(bytes, start, end);
  while (cursor.next()) {
    if (cursor.type === NFTA.TABLE.NAME) {
      table = readText(bytes, cursor.start, cursor.end); // the first of all attributes
      if (!isOurs(table)) return undefined;
    }
    if (cursor.type === nameAttribute) return { table, name: readText(bytes, cursor.start, cursor.end) };
  }
  return { table, name: '' };
}

/** End of a transaction: its number, and the process that made it. */
export interface Generation {
  readonly id: number;
  /** Process id in the host's pid namespace; 0 where the kernel gives none. */
  readonly pid: number;
  readonly name: string;
}

/** Reads the attributes of a NEWGEN, which lie behind `nfgenmsg`. */
export function readGeneration(bytes: Uint8Array, { start, end }: ByteRange): Generation {
  let id = 0;
  let pid = 0;
  let name = '';
  for (const { type, start: from, end: to } of readAttributes(bytes, start, end)) {
    if (type === NFTA.GENERATION.ID) id = readUint32be(bytes, from);
    if (type === NFTA.GENERATION.PID) pid = readUint32be(bytes, from);
    if (type === NFTA.GENERATION.NAME) name = readText(bytes, from, to);
  }
  return { id, pid, name };
}
