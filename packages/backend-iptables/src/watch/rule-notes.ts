import type { Drift, DriftKind } from '@switchyard/core/engine';
import type { IpFamily } from '@switchyard/core';
import { AttributeCursor, type NetlinkMessage, readText } from '@switchyard/native';
import {
  type ByteRange,
  DriftReport,
  DriftTally,
  NFT_NOTICE,
  type NoticeReader,
  readGeneration,
} from '@switchyard/netfilter';
import { isOurChain } from '@switchyard/netfilter/iptables';
import { type ChainRef, chainKey } from '../kernel/apply/change.ts';
import { type TableName, tableNames } from '../render/chains.ts';
import { jumpTarget } from './jump-target.ts';
import { isSharedWithOthers, isTargetOfOurs, tableText } from '../kernel/our-chains.ts';
import type { OwnProcesses } from './own-processes.ts';

/** Receives foreign changes of chains. */
export interface ForeignChanges {
  /** Another process made, changed or deleted this chain. */
  noteChain(chain: ChainRef): void;
  /** Another process deleted this table, or may have changed all of it. */
  noteTable(table: TableName): void;
  /** Another process may have changed anything. */
  noteAll(): void;
}

/** Family to watch, and the receiver of foreign changes. */
export interface RuleNotesOptions {
  readonly ipFamily: IpFamily;
  readonly own: OwnProcesses;
  /** Receives each chain of a whole transaction of others, before `take` returns it. */
  readonly foreign: ForeignChanges;
}

/** NFPROTO_IPV4 and NFPROTO_IPV6: the first byte of a notice. */
const familyNumbers: Readonly<Record<IpFamily, number>> = { IPv4: 2, IPv6: 10 };

/** NFTA_TABLE_NAME, NFTA_CHAIN_TABLE and NFTA_RULE_TABLE; NFTA_CHAIN_NAME; NFTA_RULE_CHAIN. */
const attribute = { table: 1, chainName: 3, ruleChain: 2 } as const;
const netfilterHeaderLength = 4;

/** With more chains in one transaction, the whole table counts as changed. */
const maxChains = 5000;

interface Subject {
  readonly kind: DriftKind;
  readonly text: (name: string) => string;
}

/** Kind and text of each notice type. */
const subjects: ReadonlyMap<number, Subject> = new Map<number, Subject>([
  [NFT_NOTICE.DELTABLE, { kind: 'table', text: () => 'deleted' }],
  [NFT_NOTICE.NEWCHAIN, { kind: 'chain', text: (name) => `chain ${name} added or changed` }],
  [NFT_NOTICE.DELCHAIN, { kind: 'chain', text: (name) => `chain ${name} deleted` }],
  [NFT_NOTICE.NEWRULE, { kind: 'rule', text: (name) => `rule added to chain ${name}` }],
  [NFT_NOTICE.DELRULE, { kind: 'rule', text: (name) => `rule of chain ${name} deleted` }],
]);

/** Notices read so far of one foreign transaction. */
interface Transaction {
  readonly tally: DriftTally;
  /** Texts already counted: a flushed chain loses many rules and is reported once. */
  readonly texts: Set<string>;
  readonly chains: Map<string, ChainRef>;
  /** Tables of which everything is concerned. */
  readonly tables: Set<TableName>;
}

/**
 * Reads the kernel's notices about iptables-nft's tables and reports, per transaction, the changes that other processes made to the
 * agent's chains and to the jumps that lead to them.
 *
 * Ignores new tables, and new or changed kernel chains.
 */
export class RuleNotes implements NoticeReader {
  readonly #options: RuleNotesOptions;
  readonly #family: number;
  readonly #report = new DriftReport();
  #open: Transaction | undefined;

  constructor(options: RuleNotesOptions) {
    this.#options = options;
    this.#family = familyNumbers[options.ipFamily];
  }

  note(bytes: Uint8Array, { type, portId, start, end }: NetlinkMessage): void {
    const isOwn = this.#options.own.has(portId);
    const range = { start: start + netfilterHeaderLength, end };
    if (type === NFT_NOTICE.NEWGEN) this.#close(bytes, range, isOwn);
    else if (!isOwn && bytes[start] === this.#family) this.#noteChange(bytes, type, range);
  }

  noteLoss(): void {
    this.#open = undefined;
    this.#report.addLoss();
    this.#options.foreign.noteAll();
  }

  take(): Drift | undefined {
    this.#options.own.noteLook();
    return this.#report.take();
  }

  #noteChange(bytes: Uint8Array, type: number, range: ByteRange): void {
    const subject = subjects.get(type);
    if (subject === undefined) return;
    const { table, chain } = readNames(bytes, range, type);
    if (table === undefined) return;
    const isTable = type === NFT_NOTICE.DELTABLE;
    const isRule = type === NFT_NOTICE.NEWRULE || type === NFT_NOTICE.DELRULE;
    if (!isTable && !isOurChain(chain) && !(isRule && isOursAmongOthers(bytes, type, { chain, range }))) return;
    const transaction = (this.#open ??= {
      tally: new DriftTally(),
      texts: new Set(),
      chains: new Map(),
      tables: new Set(),
    });
    const where = `table ${tableText(this.#options.ipFamily, table)}`;
    const text = isTable ? `${where} ${subject.text(chain)}` : `${subject.text(chain)} (${where})`;
    if (!transaction.texts.has(text)) transaction.tally.add(subject.kind, text);
    transaction.texts.add(text);
    if (isTable || transaction.chains.size >= maxChains) transaction.tables.add(table);
    else transaction.chains.set(chainKey(table, chain), { table, name: chain });
  }

  /** Handles a generation notice, which ends a transaction and names its process. */
  #close(bytes: Uint8Array, range: ByteRange, isOwnSocket: boolean): void {
    const generation = readGeneration(bytes, range);
    const transaction = this.#open;
    this.#open = undefined;
    const { own, foreign } = this.#options;
    if (!this.#report.isNew(generation) || isOwnSocket || transaction === undefined) return;
    if (own.has(generation.pid)) return; // its socket got another number, because that one was taken
    for (const table of transaction.tables) foreign.noteTable(table);
    for (const chain of transaction.chains.values()) if (!transaction.tables.has(chain.table)) foreign.noteChain(chain);
    this.#report.add(transaction.tally, generation);
  }
}

/** Reads table and chain of a notice. The table is undefined unless the agent writes to it. */
function readNames(
  bytes: Uint8Array,
  { start, end }: ByteRange,
  type: number,
): { readonly table: TableName | undefined; readonly chain: string } {
  const isRule = type === NFT_NOTICE.NEWRULE || type === NFT_NOTICE.DELRULE;
  const chainAttribute = isRule ? attribute.ruleChain : attribute.chainName;
  const cursor = new AttributeCursor();
  let table: TableName | undefined;
  cursor.enter(bytes, start, end);
  while (cursor.next()) {
    if (cursor.type === attribute.table)
      table = tableNames.find((name) => name === readText(bytes, cursor.start, cursor.end));
    else if (cursor.type === chainAttribute) return { table, chain: readText(bytes, cursor.start, cursor.end) };
  }
  return { table, chain: '' };
}

/** Whether a rule in a foreign chain belongs to the agent: it leads to the agent's chains, or is a deleted rule without a known target. */
function isOursAmongOthers(
  bytes: Uint8Array,
  type: number,
  { chain, range }: { readonly chain: string; readonly range: ByteRange },
): boolean {
  if (!isSharedWithOthers(chain)) return false;
  const target = jumpTarget(bytes, range);
  if (target !== undefined) return isTargetOfOurs(target);
  return type === NFT_NOTICE.DELRULE && isTargetOfOurs(chain);
}
