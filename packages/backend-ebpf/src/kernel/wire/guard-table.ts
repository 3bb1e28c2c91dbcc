import { createHash } from 'node:crypto';
import { printItem, type TableDescription, TableWriter } from '@switchyard/backend-nftables';
import type { IpFamily, Logger } from '@switchyard/core';
import { type NetlinkSocket, openNetlinkSocket } from '@switchyard/native';
import { birthmarkName, birthmarkPrefix, guardChains, guardDescription, guardTable, isChainOf } from './guard-rules.ts';
import type { WireMarks } from './marks.ts';
import { type DumpedGuard, type GuardChain, GuardReader } from './read-guard.ts';

/** Options of one family's part of the guard table. */
export interface GuardTableOptions {
  readonly ipFamily: IpFamily;
  /** Path of the network namespace; default: the process's own. */
  readonly netns?: string;
  readonly logger: Logger;
  readonly marks: WireMarks;
}

/**
 * One family's chains in the guard table. A digest of the kernel's own description of them, made after loading, is the name of a
 * birthmark chain in the table. So any process can check whether the rules are unchanged.
 */
export class GuardTable implements Disposable {
  readonly #options: GuardTableOptions;
  readonly #table: TableDescription;
  /** Kept open: entering a network namespace and allocating a buffer costs more than a look. */
  #open: { readonly socket: NetlinkSocket; readonly reader: GuardReader } | undefined;
  /** The kernel's rule generation of the last successful check. */
  #rightAt: number | undefined;

  constructor(options: GuardTableOptions) {
    this.#options = options;
    this.#table = guardDescription(guardChains(options.ipFamily, options.marks));
  }

  /** Loads missing or changed chains in one transaction. Returns writes. Rejects with `HostError`. */
  async ensure(signal: AbortSignal): Promise<number> {
    signal.throwIfAborted();
    const { ipFamily, logger } = this.#options;
    const before = this.#look();
    if (before.isRight) return 0;
    if (before.chains.length > 0) {
      logger.info('the guard table was changed, or is of another build; it is loaded again', { ipFamily });
    }
    using writer = new TableWriter(this.#where);
    // In a transaction of its own: the kernel accepts no chains for a table that the same transaction wakes up.
    if (before.sleeps) writer.wake(`cannot wake up table inet ${guardTable}`, this.#table);
    writer.load({
      attempt: `cannot load table inet ${guardTable}`,
      table: this.#table,
      mode: 'add',
      replaced: before.chains.map(({ name }) => name),
    });
    const mark = birthmarkName(ipFamily, this.#markOf(this.#look().chains));
    writer.addChain(`cannot mark table inet ${guardTable}`, guardTable, mark);
    return this.#table.items.length;
  }

  /** Descriptions of differences. Costs a microsecond while no process changes rules. */
  findFaults(): readonly string[] {
    return this.#look().isRight
      ? []
      : [`the chains of ${this.#options.ipFamily} in table inet ${guardTable} are not right`];
  }

  /** The table stays. */
  [Symbol.dispose](): void {
    this.#open?.socket[Symbol.dispose]();
    this.#open = undefined;
  }

  #look(): DumpedGuard & { readonly isRight: boolean } {
    try {
      return this.#compare(this.#reader());
    } catch (error) {
      this[Symbol.dispose](); // the socket may hold the rest of an answer
      throw error;
    }
  }

  #reader(): GuardReader {
    if (this.#open !== undefined) return this.#open.reader;
    const socket = openNetlinkSocket({ protocol: 'netfilter', ...this.#where });
    this.#open = { socket, reader: new GuardReader(socket) };
    return this.#open.reader;
  }

  #compare(reader: GuardReader): DumpedGuard & { readonly isRight: boolean } {
    const { ipFamily } = this.#options;
    const generation = reader.generation();
    if (generation === this.#rightAt) return { isRight: true, sleeps: false, chains: [] };
    const { sleeps, chains: all } = reader.read(guardTable) ?? { sleeps: false, chains: [] };
    const chains = all.filter(({ name }) => isChainOf(ipFamily, name));
    const birthmark = birthmarkName(ipFamily, this.#markOf(chains));
    const birthmarks = chains.filter(({ name }) => name.startsWith(birthmarkPrefix)).map(({ name }) => name);
    const isRight = !sleeps && birthmarks.join() === birthmark;
    this.#rightAt = isRight ? generation : undefined;
    return { isRight, sleeps, chains };
  }

  /** Digest of this build's rules and of the kernel's description of them. */
  #markOf(chains: readonly GuardChain[]): string {
    const hash = createHash('sha256').update(this.#table.items.flatMap(printItem).join('\n'));
    const rules = chains.filter(({ name }) => !name.startsWith(birthmarkPrefix));
    for (const { name, digest } of rules.toSorted((a, b) => (a.name < b.name ? -1 : 1)))
      hash.update(`${name}${digest}`);
    return hash.digest('hex').slice(0, 16);
  }

  get #where(): { readonly netns?: string } {
    const { netns } = this.#options;
    return netns === undefined ? {} : { netns };
  }
}
