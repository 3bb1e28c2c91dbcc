import type { Drift, DriftKind } from '@switchyard/core/engine';
import type { NetlinkMessage } from '@switchyard/native';
import { NFT_MSG } from './constants.ts';
import { type ByteRange, type Generation, type NoticeReader, readGeneration } from './notices.ts';

/** Reads notices transaction by transaction, and reports those of other processes whose tally is not empty. */
export abstract class ForeignTransactions<Open extends { readonly tally: DriftTally }> implements NoticeReader {
  readonly #report = new DriftReport();
  /** Notices of the transaction under way, as far as they were received. */
  protected open: Open | undefined;

  /** Whether this process changed something through a socket. */
  protected abstract isOwn(portId: number): boolean;
  /** Reads one notice of another process into `open`. */
  protected abstract noteChange(bytes: Uint8Array, type: number, range: ByteRange): void;
  /** Whether a complete transaction is a foreign change. */
  protected abstract isForeign(transaction: Open, generation: Generation): boolean;

  note(bytes: Uint8Array, { type, portId, start, end }: NetlinkMessage): void {
    const isOwn = this.isOwn(portId);
    const range = { start: start + 4, end }; // behind nfgenmsg
    if (type === NFT_MSG.NEWGEN) this.#close(readGeneration(bytes, range), isOwn);
    else if (!isOwn) this.noteChange(bytes, type, range);
  }

  noteLoss(what?: string): void {
    this.open = undefined;
    this.#report.addLoss(what);
  }

  take(): Drift | undefined {
    return this.#report.take();
  }

  /** A generation notice ends a transaction and names its process. */
  #close(generation: Generation, isOwn: boolean): void {
    const transaction = this.open;
    this.open = undefined;
    if (!this.#report.isNew(generation) || isOwn || transaction === undefined || transaction.tally.isEmpty) return;
    if (this.isForeign(transaction, generation)) this.#report.add(transaction.tally, generation);
  }
}

/** Accumulates the changes of whole foreign transactions until they are taken. */
export class DriftReport {
  #tally = new DriftTally();
  #process: Drift['process'];
  #lastGeneration = -1;

  /** Whether this generation is new: notices arrive twice when sockets overlap. */
  isNew({ id }: Generation): boolean {
    const isRepeated = (this.#lastGeneration - id) >>> 0 < 0x10000;
    if (!isRepeated) this.#lastGeneration = id;
    return !isRepeated;
  }

  /** Adds one transaction; the report names the process of the first one. */
  add(transaction: DriftTally, { pid, name }: Generation): void {
    if (this.#tally.isEmpty && pid !== 0) this.#process = { pid, name };
    this.#tally.merge(transaction);
  }

  /** Notices were lost. */
  addLoss(what = 'too many changes at once: notices were lost'): void {
    this.#tally.add('unknown', what);
  }

  /** Takes all changes since the last call; undefined for none. */
  take(): Drift | undefined {
    if (this.#tally.isEmpty) return undefined;
    const drift = { ...this.#tally.summary(), process: this.#process };
    this.#tally = new DriftTally();
    this.#process = undefined;
    return drift;
  }
}

/** Maximum number of changes listed; further ones are counted. */
const maxListed = 5;

/** From bad to worse. */
const severity: readonly DriftKind[] = ['element', 'set', 'map', 'rule', 'program', 'chain', 'table', 'unknown'];

interface Kind {
  count: number;
  readonly texts: string[];
}

/** Counts foreign changes by kind and remembers the first few in words. */
export class DriftTally {
  readonly #kinds = new Map<DriftKind, Kind>();

  get isEmpty(): boolean {
    return this.#kinds.size === 0;
  }

  add(kind: DriftKind, text: string): void {
    const found = this.#of(kind);
    found.count++;
    if (found.texts.length < maxListed) found.texts.push(text);
  }

  merge(other: DriftTally): void {
    for (const [kind, { count, texts }] of other.#kinds) {
      const found = this.#of(kind);
      found.count += count;
      found.texts.push(...texts.slice(0, maxListed - found.texts.length));
    }
  }

  /** The worst kind, and the changes, the worst first. Changes inside a deleted table are left out. */
  summary(): Pick<Drift, 'kind' | 'changes'> {
    const kinds = [...this.#kinds].toSorted(([left], [right]) => severity.indexOf(right) - severity.indexOf(left));
    const [worst = 'unknown'] = kinds[0] ?? [];
    const listed = worst === 'table' ? kinds.slice(0, 1) : kinds;
    const changes = listed.flatMap(([, { texts }]) => texts).slice(0, maxListed);
    const more = listed.reduce((sum, [, { count }]) => sum + count, 0) - changes.length;
    return { kind: worst, changes: more > 0 ? [...changes, `and ${more} more`] : changes };
  }

  #of(kind: DriftKind): Kind {
    let found = this.#kinds.get(kind);
    if (found === undefined) {
      found = { count: 0, texts: [] };
      this.#kinds.set(kind, found);
    }
    return found;
  }
}
