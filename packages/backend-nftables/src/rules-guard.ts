import { type Drift, type Logger, HostError } from '@switchyard/core';
import { NativeError, type NetlinkSocket, readAttributes, readText } from '@switchyard/native';
import { type FamilySuffix, ruleMarksSet } from './names.ts';
import { describeElement, isBirthmark } from './netlink/describe-element.ts';
import { DriftNotes } from './netlink/drift-notes.ts';
import { RulesReader } from './netlink/dump-rules.ts';
import { addMarks, deleteForeign, readMark } from './netlink/edit-rules.ts';
import { watchTables } from './netlink/watch.ts';
import { openOwnSocket, type OwnChanges, ownChanges } from './own-changes.ts';
import { compareRules, type DumpedClass, marksOf, type MarkedRules } from './rule-marks.ts';
import type { RulesKeeper, WatchedFamily } from './transport.ts';

/** Where and for whom rules are watched over. */
export interface RulesGuardOptions {
  /** As for `NetlinkOptions.netns`. */
  readonly netns?: string | undefined;
  readonly logger: Logger;
}

const receiveBuffer = 1 << 20;
const suffixes: readonly FamilySuffix[] = ['4', '6'];

/**
 * Knows whether the rules in our table are still those that were loaded. Rules are loaded by nft, whose encoding only
 * nft knows; so what counts is what the kernel showed right after the load: its marks stand in the table itself, where
 * the next process finds them.
 */
export class RulesGuard implements RulesKeeper, Disposable {
  readonly #options: RulesGuardOptions;
  readonly #own: OwnChanges;
  readonly #socket: NetlinkSocket;

  constructor(options: RulesGuardOptions) {
    const { netns } = options;
    this.#options = options;
    this.#own = ownChanges(netns);
    this.#socket = openOwnSocket({ protocol: 'netfilter', receiveBuffer, ...(netns === undefined ? {} : { netns }) });
  }

  mark(table: string): void {
    const rules = this.#read(table);
    if (rules === undefined)
      throw new HostError('nftables.vanished', `table inet ${table} was deleted while it was made`);
    addMarks(this.#socket, { table, name: ruleMarksSet }, marksOf(rules));
  }

  markChains(table: string, names: readonly string[]): void {
    const reader = new RulesReader(this.#socket);
    const rules = {
      chains: reader.chains(table).filter(({ name }) => names.includes(name)),
      sets: [],
      rules: names.flatMap((name) => reader.rules(table, name)),
      classes: this.#classes(table).filter((one) => names.includes(chainOf(one.element.data))),
    };
    addMarks(this.#socket, { table, name: ruleMarksSet }, marksOf(rules));
  }

  areRight(table: string): boolean {
    const { logger } = this.#options;
    const rules = this.#read(table);
    if (rules === undefined) return false;
    const marks = new RulesReader(this.#socket).elements(table, ruleMarksSet) ?? [];
    const verdict = compareRules(rules, new Set(marks.map(({ key }) => readMark(key))));
    if (verdict.kind === 'damaged') {
      const { missing, what } = verdict;
      logger.warn('rules are not as they were loaded', { table, missing, foreign: what.slice(0, 5) });
      return false;
    }
    const { foreign } = verdict;
    const count = foreign.rules.length + foreign.chains.length + foreign.sets.length;
    if (count === 0) return true;
    try {
      deleteForeign(this.#socket, table, foreign);
    } catch (error) {
      if (!(error instanceof NativeError)) throw error;
      logger.warn('what somebody added to our table cannot be deleted', { table, count, error });
      return false;
    }
    const { chains, sets } = foreign;
    logger.info('deleted what somebody added to our table', { table, rules: foreign.rules.length, chains, sets });
    return true;
  }

  watch({ suffix, clock }: WatchedFamily, report: (drift: Drift) => void, signal: AbortSignal): Promise<void> {
    const { netns } = this.#options;
    const own = this.#own;
    const isOwn = (portId: number): boolean => own.has(portId);
    const notes = new DriftNotes({ suffix, isOwn, describe: describeElement, isBirthmark });
    return watchTables({ netns, clock, own, notes }, report, signal);
  }

  [Symbol.dispose](): void {
    this.#socket[Symbol.dispose]();
  }

  #read(table: string): MarkedRules | undefined {
    const rules = new RulesReader(this.#socket).read(table);
    return rules && { ...rules, classes: this.#classes(table) };
  }

  #classes(table: string): readonly DumpedClass[] {
    const reader = new RulesReader(this.#socket);
    return suffixes.flatMap((suffix) => {
      const map = `lb${suffix}-classes`;
      return (reader.elements(table, map) ?? []).map((element) => ({ map, element }));
    });
  }
}

const verdict = 2; // NFTA_DATA_VERDICT
const chain = 2; // NFTA_VERDICT_CHAIN

/** The chain that a verdict leads to, in the data of an element. */
function chainOf(data: Uint8Array): string {
  for (const outer of readAttributes(data, 0, data.length)) {
    if (outer.type !== verdict) continue;
    for (const inner of readAttributes(data, outer.start, outer.end)) {
      if (inner.type === chain) return readText(data, inner.start, inner.end);
    }
  }
  return '';
}
