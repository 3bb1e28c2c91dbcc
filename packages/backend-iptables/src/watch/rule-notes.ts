import type { Drift } from '@switchyard/core/engine';
import type { IpFamily } from '@switchyard/core';
import {
  type ByteRange,
  DriftTally,
  familyNumbers,
  ForeignTransactions,
  type Generation,
  NFT_MSG,
  NFTA,
  noticeWords,
  readNames,
} from '@switchyard/netfilter';
import { isOurChain } from '@switchyard/netfilter/iptables';
import { chainKey, type ChainRef } from '../kernel/apply/change.ts';
import { type TableName, tableNames } from '../render/chains.ts';
import { isSharedWithOthers, isTargetOfOurs, tableText } from '../kernel/our-chains.ts';
import type { OwnProcesses } from './own-processes.ts';
import { readAttributes, readText } from '@switchyard/native';

/** Receives foreign changes of chains. */
export interface ForeignChanges {
  /** Another process made, changed or deleted this chain. */
  noteChain(chain: ChainRef): void;
  /** Another process deleted this table, or may have changed all of it. */
  noteTable(table: TableName): void;
  /** Another process may have changed anything. */
  noteAll(): void;
}

export interface RuleNotesOptions {
  readonly ipFamily: IpFamily;
  readonly own: OwnProcesses;
  /** Receives each chain of a whole transaction of others, before `take` returns it. */
  readonly foreign: ForeignChanges;
}

/** Length of `struct nfgenmsg`, whose first byte is the family. */
const headerLength = 4;

/** With more chains in one transaction, the whole table counts as changed. */
const maxChains = 5000;

/** New tables, and sets with their elements, matter to no rule. */
const subjects: ReadonlySet<number> = new Set([
  NFT_MSG.DELTABLE,
  NFT_MSG.NEWCHAIN,
  NFT_MSG.DELCHAIN,
  NFT_MSG.NEWRULE,
  NFT_MSG.DELRULE,
]);

interface Transaction {
  readonly tally: DriftTally;
  /** Texts already counted: a flushed chain loses many rules and is reported once. */
  readonly texts: Set<string>;
  readonly chains: Map<string, ChainRef>;
  /** Tables of which everything is concerned. */
  readonly tables: Set<TableName>;
}

/** Reports foreign changes of our chains and of the jumps that lead to them. Ignores new tables and chains of the kernel. */
export class RuleNotes extends ForeignTransactions<Transaction> {
  readonly #options: RuleNotesOptions;
  readonly #family: number;

  constructor(options: RuleNotesOptions) {
    super();
    this.#options = options;
    this.#family = familyNumbers[options.ipFamily === 'IPv4' ? 'ip' : 'ip6'];
  }

  override noteLoss(): void {
    super.noteLoss();
    this.#options.foreign.noteAll();
  }

  override take(): Drift | undefined {
    this.#options.own.noteLook();
    return super.take();
  }

  protected override isOwn(portId: number): boolean {
    return this.#options.own.has(portId);
  }

  protected override noteChange(bytes: Uint8Array, type: number, range: ByteRange): void {
    const word = subjects.has(type) && bytes[range.start - headerLength] === this.#family && noticeWords.get(type);
    const found = word && readNames(bytes, range, type, (name) => tableNames.some((one) => one === name));
    if (!word || !found) return;
    const { name: chain } = found;
    const table = found.table as TableName; // readNames accepted it
    const isTable = type === NFT_MSG.DELTABLE;
    const isRule = type === NFT_MSG.NEWRULE || type === NFT_MSG.DELRULE;
    if (!isTable && !isOurChain(chain) && !(isRule && isOursAmongOthers(bytes, type, { chain, range }))) return;
    const transaction = (this.open ??= {
      tally: new DriftTally(),
      texts: new Set(),
      chains: new Map(),
      tables: new Set(),
    });
    const where = tableText(this.#options.ipFamily, table);
    const text = isTable ? word.text(where) : `${word.text(chain)} (table ${where})`;
    if (!transaction.texts.has(text)) transaction.tally.add(word.kind, text);
    transaction.texts.add(text);
    if (isTable || transaction.chains.size >= maxChains) transaction.tables.add(table);
    else transaction.chains.set(chainKey(table, chain), { table, name: chain });
  }

  protected override isForeign({ tables, chains }: Transaction, { pid }: Generation): boolean {
    const { own, foreign } = this.#options;
    if (own.has(pid)) return false; // its socket got another number, because that one was taken
    for (const table of tables) foreign.noteTable(table);
    for (const chain of chains.values()) if (!tables.has(chain.table)) foreign.noteChain(chain);
    return true;
  }
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
  return type === NFT_MSG.DELRULE && isTargetOfOurs(chain);
}

/** The way from the attributes of an immediate expression to those of its verdict. */
const toVerdict: readonly number[] = [NFTA.EXPR.DATA, NFTA.IMMEDIATE.DATA, NFTA.DATA.VERDICT, NFTA.VERDICT.CHAIN];

/** The chain that a rule of a notice jumps or goes to; undefined for none. The range is that of its attributes. */
function jumpTarget(bytes: Uint8Array, rule: ByteRange): string | undefined {
  const expressions = find(bytes, rule, NFTA.RULE.EXPRESSIONS);
  if (expressions === undefined) return undefined;
  for (const expression of readAttributes(bytes, expressions.start, expressions.end)) {
    const target = expression.type === NFTA.LIST.ELEM ? verdictChain(bytes, expression) : undefined;
    if (target !== undefined) return target;
  }
  return undefined;
}

function verdictChain(bytes: Uint8Array, expression: ByteRange): string | undefined {
  const name = find(bytes, expression, NFTA.EXPR.NAME);
  if (name === undefined || readText(bytes, name.start, name.end) !== 'immediate') return undefined;
  let at: ByteRange | undefined = expression;
  for (const step of toVerdict) at = at && find(bytes, at, step);
  return at && readText(bytes, at.start, at.end);
}

function find(bytes: Uint8Array, { start, end }: ByteRange, type: number): ByteRange | undefined {
  return readAttributes(bytes, start, end).find((one) => one.type === type);
}
