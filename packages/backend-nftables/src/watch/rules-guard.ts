import type { Drift } from '@switchyard/core/engine';
import { HostError, type Logger } from '@switchyard/core';
import { NativeError, type NetlinkSocket, readAttributes, readText } from '@switchyard/native';
import {
  firstErrno,
  NFT_MSG,
  NFTA,
  openOwnSocket,
  type OwnChanges,
  ownChanges,
  RulesReader,
  watchTables,
} from '@switchyard/netfilter';
import { type FamilySuffix, ruleMarksSet } from '../render/names.ts';
import { describeElement, isBirthmark } from '../kernel/netlink/describe-element.ts';
import { DriftNotes } from './drift-notes.ts';
import {
  compareRules,
  type DumpedClass,
  type ForeignObjects,
  type MarkedRules,
  marksOf,
  type RuleMark,
} from '../kernel/rule-marks.ts';
import type { RulesKeeper, WatchedFamily } from '../kernel/transport.ts';
import type { TableWriterOptions } from '../kernel/netlink/table-writer.ts';
import { BatchEncoder, type BatchTarget } from '../kernel/netlink/encode-batch.ts';
import { addElements, deleteChain, deleteRules, writeElement, writeKey } from '../kernel/netlink/write-objects.ts';

export interface RulesGuardOptions extends TableWriterOptions {
  readonly logger: Logger;
}

const receiveBuffer = 1 << 20;
const texts = { attempt: 'cannot read the rules', code: 'nftables' } as const;
const suffixes: readonly FamilySuffix[] = ['4', '6'];

/** Compares rules with the listing after their load, as kernels may list them in another form. Its marks are stored in the table itself. */
export class RulesGuard implements RulesKeeper, Disposable {
  readonly #options: RulesGuardOptions;
  readonly #own: OwnChanges;
  /** Undefined after a failure, which may have left answers in it. */
  #socket: NetlinkSocket | undefined;

  constructor(options: RulesGuardOptions) {
    this.#options = options;
    this.#own = ownChanges(options.netns);
    this.#socket = this.#open();
  }

  mark(table: string): void {
    this.#guarded((socket) => {
      const rules = readAll(socket, table);
      if (rules === undefined)
        throw new HostError('nftables.vanished', `table inet ${table} was deleted while it was made`);
      addMarks(socket, { table, name: ruleMarksSet }, marksOf(rules));
      this.#own.noteCommit();
    });
  }

  markChains(table: string, names: readonly string[]): void {
    this.#guarded((socket) => {
      const reader = new RulesReader(socket, texts);
      const rules = {
        chains: reader.chains(table).filter(({ name }) => names.includes(name)),
        sets: [],
        rules: names.flatMap((name) => reader.rules(table, name)),
        classes: readClasses(reader, table).filter((one) => names.includes(chainOf(one.element.data))),
      };
      addMarks(socket, { table, name: ruleMarksSet }, marksOf(rules));
      this.#own.noteCommit();
    });
  }

  areRight(table: string): boolean {
    return this.#guarded((socket) => this.#areRight(socket, table));
  }

  #areRight(socket: NetlinkSocket, table: string): boolean {
    const { logger } = this.#options;
    const rules = readAll(socket, table);
    if (rules === undefined) return false;
    const marks = new RulesReader(socket, texts).elements(table, ruleMarksSet) ?? [];
    if (marks.length === 0) {
      // The loading process ended before it wrote them.
      logger.info('rules without marks are replaced: their state is unknown', { table });
      return false;
    }
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
      deleteForeign(socket, table, foreign);
      this.#own.noteCommit();
    } catch (error) {
      if (!(error instanceof NativeError)) throw error;
      logger.warn('cannot delete foreign objects from our table', { table, count, error });
      return false;
    }
    const { chains, sets } = foreign;
    logger.info('deleted foreign objects from our table', { table, rules: foreign.rules.length, chains, sets });
    return true;
  }

  watch(
    { suffix, clock, tables, written }: WatchedFamily,
    report: (drift: Drift) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { netns } = this.#options;
    const own = this.#own;
    const isOwn = (portId: number): boolean => own.has(portId);
    const notes = new DriftNotes({ suffix, tables, isOwn, describe: describeElement, isBirthmark });
    const isDamaged = (): boolean => {
      const table = written();
      return table !== undefined && !this.areRight(table);
    };
    return watchTables({ netns, clock, own, notes, isDamaged }, report, signal);
  }

  [Symbol.dispose](): void {
    this.#socket?.[Symbol.dispose]();
    this.#socket = undefined;
  }

  #guarded<T>(work: (socket: NetlinkSocket) => T): T {
    this.#socket ??= this.#open();
    try {
      return work(this.#socket);
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  #open(): NetlinkSocket {
    const { netns, open = openOwnSocket } = this.#options;
    return open({ protocol: 'netfilter', receiveBuffer, netns });
  }
}

/** Undefined when there is no such table. */
function readAll(socket: NetlinkSocket, table: string): MarkedRules | undefined {
  const reader = new RulesReader(socket, texts);
  const rules = reader.read(table);
  return rules && { ...rules, classes: readClasses(reader, table) };
}

function readClasses(reader: RulesReader, table: string): readonly DumpedClass[] {
  return suffixes.flatMap((suffix) => {
    const map = `lb${suffix}-classes`;
    return (reader.elements(table, map) ?? []).map((element) => ({ map, element }));
  });
}

/** The chain that a verdict leads to, in the data of an element. */
function chainOf(data: Uint8Array): string {
  for (const outer of readAttributes(data, 0, data.length)) {
    if (outer.type !== NFTA.DATA.VERDICT) continue;
    for (const inner of readAttributes(data, outer.start, outer.end)) {
      if (inner.type === NFTA.VERDICT.CHAIN) return readText(data, inner.start, inner.end);
    }
  }
  return '';
}

/** A list of elements is one attribute of at most 64 KB; one mark takes 20 bytes. */
const marksPerMessage = 2000;

function addMarks(
  socket: NetlinkSocket,
  set: { readonly table: string; readonly name: string },
  marks: Iterable<RuleMark>,
): void {
  const all = [...marks];
  const attempt = `cannot mark the rules of table inet ${set.table}`;
  transact(socket, { attempt, table: set.table }, (target) => {
    for (let at = 0; at < all.length; at += marksPerMessage) {
      addElements(target, set.name, (writer) => {
        for (const mark of all.slice(at, at + marksPerMessage)) {
          writeElement(writer, () => writeKey(writer, Buffer.from(mark, 'hex')));
        }
      });
    }
  });
}

/** Deletes foreign objects from our table in one transaction: rules, then chains, then sets. Throws `NativeError`. */
function deleteForeign(socket: NetlinkSocket, table: string, foreign: ForeignObjects): void {
  const attempt = `cannot delete foreign objects from table inet ${table}`;
  transact(socket, { attempt, table }, (target) => {
    for (const { chain, handle } of foreign.rules) deleteRules(target, chain, handle);
    for (const name of foreign.chains) deleteChain(target, name);
    for (const name of foreign.sets) {
      target.begin(NFT_MSG.DELSET, 0, name);
      target.writer.attributeText(NFTA.SET.TABLE, table);
      target.writer.attributeText(NFTA.SET.NAME, name);
      target.writer.endMessage();
    }
  });
}

/** Returns the mark in a key that the kernel reported. */
function readMark(key: Uint8Array): RuleMark {
  return Buffer.from(key.subarray(key.length - markBytes)).toString('hex');
}

const markBytes = 8;

interface Transaction {
  readonly attempt: string;
  readonly table: string;
}

/** Commits all messages or none. The kernel queues errors before `send` returns. */
function transact(socket: NetlinkSocket, { attempt, table }: Transaction, write: (target: BatchTarget) => void): void {
  socket.send(new BatchEncoder().custom(table, write).bytes);
  const errno = firstErrno(socket) ?? 0;
  if (errno !== 0) throw new NativeError(attempt, { errno, syscall: 'nf_tables commit' }, 'nothing of it took effect');
}
