import { assertNever } from '@switchyard/core';
import type { IptablesVariant } from '@switchyard/host';
import type { TableName } from '../chains.ts';
import { type Change, chainOf } from './change.ts';
import { stepOf, type StepKey, writeOrder } from './write-order.ts';

/** Some changes and what they are of. */
export interface Planned<Of> {
  readonly of: Of;
  readonly changes: readonly Change[];
}

/** One transaction of the kernel within a restore: `*table` to `COMMIT`. */
interface Transaction {
  readonly table: TableName;
  readonly changes: readonly Change[];
  /** The line of its COMMIT; 1 is the first of the text. */
  readonly end: number;
}

/** Input of one `iptables-restore --noflush`. */
export interface RestoreText<Of> {
  readonly pieces: readonly string[];
  readonly lines: number;
  /** How many transactions it consists of. */
  readonly transactions: number;
  /** Whose line this is; undefined for those that belong to nobody. */
  ownerOf(line: number): Of | undefined;
  /** All changes, in the order in which they are written. */
  changes(): Iterable<Change>;
  /** Changes that are in the kernel although `line` was refused: those of transactions that were done before. */
  writtenBefore(line: number): Iterable<Change>;
}

/** Writes changes down in the order in which they are to be made. */
export function composeRestore<Of>(planned: readonly Planned<Of>[], variant: IptablesVariant): RestoreText<Of> {
  const writer = new Writer<Of>(variant);
  for (const { table, changes } of transactionsOf(sortIntoSteps(planned))) writer.write(table, changes);
  return writer.finish();
}

interface Owned<Of> {
  readonly of: Of;
  readonly change: Change;
}

function sortIntoSteps<Of>(planned: readonly Planned<Of>[]): ReadonlyMap<StepKey, readonly Owned<Of>[]> {
  const steps = new Map<StepKey, Owned<Of>[]>();
  for (const { of, changes } of planned) {
    for (const change of changes) {
      const key = stepOf(change);
      const step = steps.get(key);
      if (step === undefined) steps.set(key, [{ of, change }]);
      else step.push({ of, change });
    }
  }
  return steps;
}

interface Portion<Of> {
  readonly table: TableName;
  readonly changes: Owned<Of>[];
}

/** Steps that follow each other and are of one table. */
function transactionsOf<Of>(bySteps: ReadonlyMap<StepKey, readonly Owned<Of>[]>): readonly Portion<Of>[] {
  const portions: Portion<Of>[] = [];
  for (const { table, what } of writeOrder) {
    const step = bySteps.get(`${table} ${what}`);
    if (step === undefined) continue;
    let last = portions.at(-1);
    if (last?.table !== table) portions.push((last = { table, changes: [] }));
    for (const owned of step) last.changes.push(owned);
  }
  return portions;
}

class Writer<Of> {
  readonly #variant: IptablesVariant;
  readonly #pieces: string[] = [];
  readonly #starts: number[] = [];
  readonly #owners: (Of | undefined)[] = [];
  readonly #transactions: Transaction[] = [];
  #lines = 0;

  constructor(variant: IptablesVariant) {
    this.#variant = variant;
  }

  write(table: TableName, owned: readonly Owned<Of>[]): void {
    this.#push(undefined, `*${table}\n`);
    this.#declare(owned);
    const changes: Change[] = [];
    for (const { of, change } of owned) {
      changes.push(change);
      this.#text(of, change);
    }
    this.#push(undefined, 'COMMIT\n');
    this.#transactions.push({ table, changes, end: this.#lines });
  }

  /**
   * Chains that are written or go are named first, which empties them. The nft variant keeps named chains in a sorted list
   * that it walks from the first name on: in descending order each is put in at once.
   */
  #declare(owned: readonly Owned<Of>[]): void {
    const named = owned.filter(({ change }) => 'name' in change);
    if (this.#variant === 'nft') named.sort((a, b) => (chainOf(a.change).name < chainOf(b.change).name ? 1 : -1));
    for (const { of, change } of named) this.#push(of, `:${chainOf(change).name} - [0:0]\n`);
  }

  finish(): RestoreText<Of> {
    const [starts, owners, transactions] = [this.#starts, this.#owners, this.#transactions];
    return {
      pieces: this.#pieces,
      lines: this.#lines,
      transactions: transactions.length,
      ownerOf: (line) => owners[starts.findLastIndex((start) => start <= line)],
      changes: () => transactions.flatMap(({ changes }) => changes),
      writtenBefore: (line) => transactions.filter(({ end }) => end < line).flatMap(({ changes }) => changes),
    };
  }

  #text(of: Of, change: Change): void {
    switch (change.kind) {
      case 'chain':
        return this.#push(of, change.body, change.lines);
      case 'list':
        for (const rule of change.tail) this.#push(of, `-A ${change.name} ${rule}\n`);
        return;
      case 'insert':
        return this.#push(of, `-I ${change.chain} 1 ${change.rule}\n`);
      case 'move':
        return this.#push(of, `-D ${change.chain} ${change.rule}\n-I ${change.chain} 1 ${change.rule}\n`, 2);
      case 'append':
        return this.#push(of, `-A ${change.chain} ${change.rule}\n`);
      case 'delete':
        return this.#push(of, `-D ${change.chain} ${change.rule}\n`);
      case 'remove':
        return this.#push(of, `-X ${change.name}\n`);
      case 'tail':
        return;
      default:
        return assertNever(change);
    }
  }

  #push(of: Of | undefined, text: string, lines = 1): void {
    if (text === '') return;
    if (this.#owners.length === 0 || this.#owners.at(-1) !== of) {
      this.#starts.push(this.#lines + 1);
      this.#owners.push(of);
    }
    this.#pieces.push(text);
    this.#lines += lines;
  }
}
