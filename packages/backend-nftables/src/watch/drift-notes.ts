import type { Drift, DriftKind } from '@switchyard/core/engine';
import {
  type ByteRange,
  DriftReport,
  DriftTally,
  NFT_NOTICE,
  type NoticeReader,
  readGeneration,
} from '@switchyard/netfilter';
import { type NetlinkMessage, readAttributes, readText } from '@switchyard/native';
import { birthmarkSet, type FamilySuffix } from '../render/names.ts';
import { NFTA } from '../kernel/netlink/constants.ts';

/** Options of the reader of notices. */
export interface DriftNotesOptions {
  /** Elements of the other family are left to its own watch; everything else concerns both. */
  readonly suffix: FamilySuffix;
  /** Names of our tables; all others are not ours. */
  readonly tables: readonly string[];
  /** Whether this process changed something through a socket. */
  readonly isOwn: (portId: number) => boolean;
  /** An element in words, from the attributes of its notice; undefined for an object that does not matter. */
  readonly describe: (set: string, attributes: Uint8Array) => string | undefined;
  /** Whether the element of a notice is the birthmark of our own rules. */
  readonly isBirthmark: (attributes: Uint8Array) => boolean;
}

/** Kind and description of each notice. */
const words: ReadonlyMap<number, { readonly kind: DriftKind; readonly text: (name: string) => string }> = new Map([
  [NFT_NOTICE.NEWTABLE, { kind: 'table', text: (name) => `table ${name} made or changed` }],
  [NFT_NOTICE.DELTABLE, { kind: 'table', text: (name) => `table ${name} deleted` }],
  [NFT_NOTICE.NEWCHAIN, { kind: 'chain', text: (name) => `chain ${name} added or changed` }],
  [NFT_NOTICE.DELCHAIN, { kind: 'chain', text: (name) => `chain ${name} deleted` }],
  [NFT_NOTICE.NEWRULE, { kind: 'rule', text: (name) => `rule added to chain ${name}` }],
  [NFT_NOTICE.DELRULE, { kind: 'rule', text: (name) => `rule of chain ${name} deleted` }],
  [NFT_NOTICE.NEWSET, { kind: 'set', text: (name) => `set or map ${name} added` }],
  [NFT_NOTICE.DELSET, { kind: 'set', text: (name) => `set or map ${name} deleted` }],
  [NFT_NOTICE.NEWSETELEM, { kind: 'element', text: (name) => `added to ${name}` }],
  [NFT_NOTICE.DELSETELEM, { kind: 'element', text: (name) => `deleted from ${name}` }],
]);

const deletions: ReadonlySet<number> = new Set([
  NFT_NOTICE.DELTABLE,
  NFT_NOTICE.DELCHAIN,
  NFT_NOTICE.DELRULE,
  NFT_NOTICE.DELSET,
  NFT_NOTICE.DELSETELEM,
]);

/** One foreign transaction, as far as its notices were received. */
interface Transaction {
  readonly tally: DriftTally;
  makesTable: boolean;
  hasBirthmark: boolean;
  /** It does something that loading our rules does not do. */
  isMoreThanLoad: boolean;
}

/** A notice, taken apart. */
interface Notice {
  readonly type: number;
  readonly table: string;
  /** Of the object; of the table itself if it is about that. */
  readonly name: string;
  /** All attributes, where it is about an element. */
  readonly element: Uint8Array | undefined;
}

/**
 * Reads notices of nftables and reports foreign changes of our tables, transaction by transaction.
 *
 * Our own writes are known by their sockets. A transaction of another process that makes a table with the birthmark of
 * this very build, deletes nothing and holds no element of a Service loads the same rules: that is no drift.
 */
export class DriftNotes implements NoticeReader {
  readonly #options: DriftNotesOptions;
  #open: Transaction | undefined;
  readonly #report = new DriftReport();

  constructor(options: DriftNotesOptions) {
    this.#options = options;
  }

  /** Takes in one message of a datagram. */
  note(bytes: Uint8Array, { type, portId, start, end }: NetlinkMessage): void {
    if (this.#options.isOwn(portId)) return;
    const range = { start: start + 4, end }; // behind nfgenmsg
    if (type === NFT_NOTICE.NEWGEN) this.#close(bytes, range);
    const notice = words.has(type) ? readNotice(this.#options.tables, type, bytes, range) : undefined;
    if (notice !== undefined) this.#noteChange(notice);
  }

  /** The kernel threw notices away: anything may have happened. */
  noteLoss(): void {
    this.#open = undefined;
    this.#report.addLoss();
  }

  /** Returns the foreign changes of complete transactions since the last call; undefined if there were none. */
  take(): Drift | undefined {
    return this.#report.take();
  }

  #noteChange({ type, name, element }: Notice): void {
    const word = words.get(type);
    const isElement = element !== undefined;
    const transaction = (this.#open ??= newTransaction());
    if (type === NFT_NOTICE.NEWTABLE) transaction.makesTable = true;
    if (isElement && name === birthmarkSet && this.#options.isBirthmark(element)) transaction.hasBirthmark = true;
    if (deletions.has(type) || (isElement && isOfFamily(name))) transaction.isMoreThanLoad = true;
    const isOtherFamily = isElement && isOfFamily(name) && !name.endsWith(this.#options.suffix);
    if (word === undefined || isUnnamed(name) || isOtherFamily) return;
    if (!isElement) return transaction.tally.add(word.kind, word.text(name));
    const text = this.#options.describe(name, element);
    if (text !== undefined) transaction.tally.add(word.kind, `element ${text} ${word.text(name)}`);
  }

  /** A generation notice ends a transaction and names its process. */
  #close(bytes: Uint8Array, range: ByteRange): void {
    const generation = readGeneration(bytes, range);
    const transaction = this.#open;
    this.#open = undefined;
    if (!this.#report.isNew(generation) || transaction === undefined || transaction.tally.isEmpty) return;
    if (transaction.makesTable && transaction.hasBirthmark && !transaction.isMoreThanLoad) return;
    this.#report.add(transaction.tally, generation);
  }
}

function newTransaction(): Transaction {
  return { tally: new DriftTally(), makesTable: false, hasBirthmark: false, isMoreThanLoad: false };
}

/** Undefined for other tables. */
function readNotice(
  tables: readonly string[],
  type: number,
  bytes: Uint8Array,
  { start, end }: ByteRange,
): Notice | undefined {
  let table = '';
  let name = '';
  const isElement = type === NFT_NOTICE.NEWSETELEM || type === NFT_NOTICE.DELSETELEM;
  const isChain = type === NFT_NOTICE.NEWCHAIN || type === NFT_NOTICE.DELCHAIN;
  const isTable = type === NFT_NOTICE.NEWTABLE || type === NFT_NOTICE.DELTABLE;
  const nameAttribute = isChain ? NFTA.CHAIN.NAME : isTable ? NFTA.TABLE.NAME : NFTA.SET.NAME;
  for (const { type: at, start: from, end: to } of readAttributes(bytes, start, end)) {
    if (at === NFTA.TABLE.NAME) {
      table = readText(bytes, from, to); // the first of all attributes
      if (!tables.includes(table)) return undefined;
    }
    if (at === nameAttribute) name = readText(bytes, from, to);
  }
  return { type, table, name, element: isElement ? bytes.subarray(start, end) : undefined };
}

/** Sets within rules, such as `__set0`, come and go with their rule and cannot be changed. */
function isUnnamed(name: string): boolean {
  return name.startsWith('__');
}

function isOfFamily(name: string): boolean {
  return /[46]$/.test(name) && !isUnnamed(name);
}
