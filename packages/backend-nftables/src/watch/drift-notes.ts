import {
  type ByteRange,
  DriftTally,
  ForeignTransactions,
  NFT_MSG,
  noticeWords,
  readNames,
} from '@switchyard/netfilter';
import { birthmarkSet, type FamilySuffix } from '../render/names.ts';

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

const deletions: ReadonlySet<number> = new Set([
  NFT_MSG.DELTABLE,
  NFT_MSG.DELCHAIN,
  NFT_MSG.DELRULE,
  NFT_MSG.DELSET,
  NFT_MSG.DELSETELEM,
]);

/** One foreign transaction, as far as its notices were received. */
interface Transaction {
  readonly tally: DriftTally;
  makesTable: boolean;
  hasBirthmark: boolean;
  /** It does something that loading our rules does not do. */
  isMoreThanLoad: boolean;
}

/** Foreign changes of our tables. To load the rules of this very build, deleting nothing and without elements of Services, is no drift. */
export class DriftNotes extends ForeignTransactions<Transaction> {
  readonly #options: DriftNotesOptions;

  constructor(options: DriftNotesOptions) {
    super();
    this.#options = options;
  }

  protected override isOwn(portId: number): boolean {
    return this.#options.isOwn(portId);
  }

  protected override noteChange(bytes: Uint8Array, type: number, range: ByteRange): void {
    const word = noticeWords.get(type);
    const { tables, suffix, describe, isBirthmark } = this.#options;
    const name = word && readNames(bytes, range, type, (table) => tables.includes(table))?.name;
    if (word === undefined || name === undefined) return;
    const element = word.kind === 'element' ? bytes.subarray(range.start, range.end) : undefined;
    const isElement = element !== undefined;
    const transaction = (this.open ??= newTransaction());
    if (type === NFT_MSG.NEWTABLE) transaction.makesTable = true;
    if (isElement && name === birthmarkSet && isBirthmark(element)) transaction.hasBirthmark = true;
    if (deletions.has(type) || (isElement && isOfFamily(name))) transaction.isMoreThanLoad = true;
    const isOtherFamily = isElement && isOfFamily(name) && !name.endsWith(suffix);
    if (isUnnamed(name) || isOtherFamily) return;
    if (!isElement) return transaction.tally.add(word.kind, word.text(name));
    const text = describe(name, element);
    if (text !== undefined) transaction.tally.add(word.kind, `element ${text} ${word.text(name)}`);
  }

  protected override isForeign({ makesTable, hasBirthmark, isMoreThanLoad }: Transaction): boolean {
    return !makesTable || !hasBirthmark || isMoreThanLoad;
  }
}

function newTransaction(): Transaction {
  return { tally: new DriftTally(), makesTable: false, hasBirthmark: false, isMoreThanLoad: false };
}

/** Sets within rules, such as `__set0`, come and go with their rule and cannot be changed. */
function isUnnamed(name: string): boolean {
  return name.startsWith('__');
}

function isOfFamily(name: string): boolean {
  return /[46]$/.test(name) && !isUnnamed(name);
}
