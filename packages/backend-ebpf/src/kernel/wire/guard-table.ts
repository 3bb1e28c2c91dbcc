import { createHash } from 'node:crypto';
import { printItem, type TableDescription, TableWriter } from '@switchyard/backend-nftables';
import type { IpFamily, Logger } from '@switchyard/core';
import { type NetlinkSocket, openNetlinkSocket } from '@switchyard/native';
import { birthmarkName, birthmarkPrefix, guardChains, guardDescription, guardTable, isChainOf } from './guard-rules.ts';
import type { WireMarks } from './marks.ts';
import { type DumpedGuard, type GuardChain, GuardReader } from './read-guard.ts';

/** Where the table is, and for whom. */
export interface GuardTableOptions {
  readonly ipFamily: IpFamily;
  /** Path of the network namespace; default: the process's own. */
  readonly netns?: string;
  readonly logger: Logger;
  readonly marks: WireMarks;
}

/**
 * One family's chains in the guard table. The kernel's own words about them are digested right after they were loaded and stand in
 * the table as the name of a chain, so that any process can tell whether they are still right.
 */
export class GuardTable implements Disposable {
  readonly #options: GuardTableOptions;
  readonly #table: TableDescription;
  /** Kept open: to enter a network namespace and to make a buffer costs more than to look. */
  #open: { readonly socket: NetlinkSocket; readonly reader: GuardReader } | undefined;
  /** The kernel's generation of rules at which ours were last seen to be right. */
  #rightAt: number | undefined;

  constructor(options: GuardTableOptions) {
    this.#options = options;
    this.#table = guardDescription(guardChains(options.ipFamily, options.marks));
  }

  /** Loads the chains where they are not there or not right, in one transaction. Returns writes. Rejects with `HostError`. */
  async ensure(signal: AbortSignal): Promise<number> {
    signal.throwIfAborted();
    const { ipFamily, logger } = this.#options;
    const before = this.#look();
    if (before.isRight) return 0;
    if (before.chains.length > 0) {
      logger.info('the guard table is not as it was left, or by another build; it is loaded again', { ipFamily });
    }
    using writer = new TableWriter(this.#where);
    // In a transaction of its own: the kernel takes no chains for a table that is about to wake up.
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

  /** In words; empty when all is right. Costs a microsecond while nobody changes any rules. */
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
      this[Symbol.dispose](); // the rest of an answer may be in the socket
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

  /** Of the rules this build loads, and of what the kernel made of them. */
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
