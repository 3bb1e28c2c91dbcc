import { assertNever } from '@switchyard/core';
import type { TableName } from '../../render/chains.ts';
import { chainOf, type Change } from './change.ts';

export interface Planned<Of> {
  readonly group: Of;
  readonly changes: readonly Change[];
}

/** Input of one `iptables-restore --noflush`. Made while it is read: a big one never stands in memory as a whole. */
export interface RestoreText<Of> {
  /** The text in pieces of some thousand characters. May be called repeatedly. */
  pieces(): Iterable<string>;
  /** Number of transactions; each ends with a COMMIT. */
  readonly transactions: number;
  /** All changes, in the order in which they are written. */
  changes(): Iterable<Change>;
  /** The group that owns a line; 1 is the first. Undefined for lines without an owner, such as COMMIT. */
  ownerOf(line: number): Of | undefined;
  /** Changes that are in the kernel although `line` was refused: those of earlier transactions. */
  writtenBefore(line: number): Iterable<Change>;
}

/** Composes the text of a restore: all changes in a safe order. */
export function composeRestore<Of>(planned: readonly Planned<Of>[]): RestoreText<Of> {
  const transactions = transactionsOf(planned);
  return {
    transactions: transactions.length,
    pieces: () => joined(transactions),
    changes: () => changesOf(transactions),
    ownerOf: (line) => findOwner(transactions, line),
    writtenBefore: (line) => changesOf(doneBefore(transactions, line)),
  };
}

/** One transaction of the kernel within a restore: `*table` to `COMMIT`. */
interface Transaction<Of> {
  readonly table: TableName;
  readonly changes: Change[];
  /** Owner of the change at the same index. */
  readonly owners: Of[];
  /** Chains that are written or deleted, in the order in which the text names them. */
  readonly named: string[];
}

/** Merges adjacent steps of one table into one transaction. */
function transactionsOf<Of>(planned: readonly Planned<Of>[]): readonly Transaction<Of>[] {
  const bySteps = sortIntoSteps(planned);
  const transactions: Transaction<Of>[] = [];
  for (const key of writeOrder) {
    const step = bySteps.get(key);
    if (step === undefined) continue;
    const table = key.slice(0, key.indexOf(' ')) as TableName;
    const last = transactions.at(-1);
    if (last?.table !== table) {
      transactions.push({ table, ...step, named: [] });
      continue;
    }
    for (const change of step.changes) last.changes.push(change);
    for (const owner of step.owners) last.owners.push(owner);
  }
  for (const { changes, named } of transactions) {
    for (const change of changes) if ('name' in change) named.push(change.name);
    nameInOrder(named);
  }
  return transactions;
}

/** Naming a chain empties it. Both variants look for its place from the first name on: descending order is fast. */
function nameInOrder(names: string[]): void {
  names.sort((a, b) => (a < b ? 1 : -1));
}

type Step<Of> = Pick<Transaction<Of>, 'changes' | 'owners'>;

function sortIntoSteps<Of>(planned: readonly Planned<Of>[]): ReadonlyMap<StepKey, Step<Of>> {
  const steps = new Map<StepKey, Step<Of>>();
  for (const { group, changes } of planned) {
    for (const change of changes) {
      const key = stepOf(change);
      let step = steps.get(key);
      if (step === undefined) steps.set(key, (step = { changes: [], owners: [] }));
      step.changes.push(change);
      step.owners.push(group);
    }
  }
  return steps;
}

function* changesOf(transactions: Iterable<Transaction<unknown>>): Generator<Change> {
  for (const { changes } of transactions) yield* changes;
}

function* doneBefore<Of>(transactions: readonly Transaction<Of>[], line: number): Generator<Transaction<Of>> {
  let end = 0;
  for (const transaction of transactions) {
    end += linesOf(transaction);
    if (end >= line) return;
    yield transaction;
  }
}

function linesOf({ changes, named }: Transaction<unknown>): number {
  let lines = 2 + named.length;
  for (const change of changes) lines += linesOfChange(change);
  return lines;
}

/** Walks the text again: refusals are rare, and an index of the lines would be as large as the text. */
function findOwner<Of>(transactions: readonly Transaction<Of>[], line: number): Of | undefined {
  let at = 0;
  for (const { changes, owners, named } of transactions) {
    const name = named[line - at - 2];
    if (line > at && name !== undefined) {
      return owners[changes.findIndex((change) => 'name' in change && change.name === name)];
    }
    at += 1 + named.length;
    for (const [index, change] of changes.entries()) {
      at += linesOfChange(change);
      if (line <= at) return line > at - linesOfChange(change) ? owners[index] : undefined;
    }
    at += 1;
  }
  return undefined;
}

/** Pieces of at least this many characters: each costs a write. */
const pieceSize = 16_000;

function* joined(transactions: readonly Transaction<unknown>[]): Generator<string> {
  let piece = '';
  for (const text of texts(transactions)) {
    piece += text;
    if (piece.length < pieceSize) continue;
    yield piece;
    piece = '';
  }
  if (piece !== '') yield piece;
}

function* texts(transactions: readonly Transaction<unknown>[]): Generator<string> {
  for (const { table, changes, named } of transactions) {
    yield `*${table}\n`;
    for (const name of named) yield `:${name} - [0:0]\n`;
    for (const change of changes) yield textOf(change);
    yield 'COMMIT\n';
  }
}

function textOf(change: Change): string {
  switch (change.kind) {
    case 'chain':
      return addTo(change.name, change.rulesOf(change.name));
    case 'list':
      return addTo(change.name, change.tail);
    case 'insert':
      return `-I ${change.chain} 1 ${change.rule}\n`;
    case 'move':
      return `-D ${change.chain} ${change.rule}\n-I ${change.chain} 1 ${change.rule}\n`;
    case 'append':
      return `-A ${change.chain} ${change.rule}\n`;
    case 'delete':
      return `-D ${change.chain} ${change.rule}\n`;
    case 'remove':
      return `-X ${chainOf(change).name}\n`;
    case 'tail':
      return '';
    default:
      return assertNever(change);
  }
}

function addTo(name: string, rules: readonly string[]): string {
  let text = '';
  for (const rule of rules) text += `-A ${name} ${rule}\n`;
  return text;
}

function linesOfChange(change: Change): number {
  switch (change.kind) {
    case 'chain':
      return change.lines;
    case 'list':
      return change.tail.length;
    case 'move':
      return 2;
    case 'tail':
      return 0;
    default:
      return 1;
  }
}

/** One step of a restore. Adjacent steps of one table form one kernel transaction. */
type StepKey = `${TableName} ${'chains' | 'entries' | 'jumps' | 'unlink' | 'remove'}`;

/** The order of all changes. A new connection passes nat first, and rules of filter match the address before translation. */
export const writeOrder: readonly StepKey[] = [
  // No packet passes these. The birthmark must exist even if later steps are refused, or a cleanup misses the chains.
  'mangle chains',
  'filter chains', // a rule can lead only to an existing chain
  'filter entries', // rejects and drops match only untranslated packets: early does no harm, late would leave a gap
  'filter jumps', // KUBE-FORWARD accepts before the first connection is translated; rejects are right before nat is
  'nat chains', // endpoint chains are written before the chains that choose among them; no rule leads to them yet
  'nat entries', // the chains behind the entries are complete, so the Service becomes visible
  'nat jumps', // on a fresh node this makes all Services visible at once, masquerading with them
  'nat unlink', // the new entries are first in their chains, so packets no longer reach the old ones
  'nat remove', // the kernel deletes only chains that no rule leads to
  'filter unlink', // a reject is removed only after nat translates the packets that it matched
  'filter remove', // no rule leads to them
  'mangle remove', // no packet passes these
];

function stepOf(change: Change): StepKey {
  const { table } = change;
  switch (change.kind) {
    case 'chain':
    case 'list':
      return `${table} chains`;
    case 'insert':
    case 'append':
      return change.isJump ? `${table} jumps` : `${table} entries`;
    case 'move':
    case 'tail':
      return `${table} entries`;
    case 'delete':
      return `${table} unlink`;
    case 'remove':
      return `${table} remove`;
    default:
      return assertNever(change);
  }
}
