import { createHash } from 'node:crypto';
import { printItem, type TableDescription, TableWriter } from '@switchyard/backend-nftables';
import { type DumpedObject, RulesReader } from '@switchyard/netfilter';
import { type NetlinkSocket, openNetlinkSocket } from '@switchyard/native';
import {
  birthmarkName,
  birthmarkPrefix,
  guardChains,
  guardDescription,
  guardTable,
  isChainOf,
  type WireMarks,
} from './guard-rules.ts';
import type { UplinkOptions } from './uplink-programs.ts';

const texts = { attempt: 'cannot read the rules of the kernel', code: 'ebpf.guard' } as const;
/** NFT_TABLE_F_DORMANT. */
const dormant = 1;

export interface GuardTableOptions extends Pick<UplinkOptions, 'ipFamily' | 'netns' | 'logger'> {
  readonly marks: WireMarks;
}

/** One family's chains, with a digest of the kernel's description of them as the name of a birthmark chain. */
export class GuardTable implements Disposable {
  readonly #options: GuardTableOptions;
  readonly #table: TableDescription;
  /** Kept open: entering a network namespace and allocating a buffer costs more than a look. */
  #open: { readonly socket: NetlinkSocket; readonly reader: RulesReader } | undefined;
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
    using writer = new TableWriter({ netns: this.#options.netns });
    // In a transaction of its own: the kernel accepts no chains for a table that the same transaction wakes up.
    if (before.sleeps) writer.wake(`cannot wake up table inet ${guardTable}`, this.#table);
    writer.load({
      attempt: `cannot load table inet ${guardTable}`,
      table: this.#table,
      mode: 'add',
      replaced: before.chains.map(({ name }) => name),
    });
    const mark = this.#birthmark(this.#reader(), this.#look().chains);
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

  #look(): Look {
    try {
      return this.#compare(this.#reader());
    } catch (error) {
      this[Symbol.dispose](); // the socket may hold the rest of an answer
      throw error;
    }
  }

  #reader(): RulesReader {
    if (this.#open !== undefined) return this.#open.reader;
    const socket = openNetlinkSocket({ protocol: 'netfilter', netns: this.#options.netns });
    this.#open = { socket, reader: new RulesReader(socket, texts) };
    return this.#open.reader;
  }

  #compare(reader: RulesReader): Look {
    const generation = reader.generation();
    if (generation === this.#rightAt) return { isRight: true, sleeps: false, chains: [] };
    const flags = reader.flags(guardTable);
    const all = flags === undefined ? [] : reader.chains(guardTable);
    const chains = all.filter(({ name }) => isChainOf(this.#options.ipFamily, name));
    const birthmarks = chains.filter(isBirthmark).map(({ name }) => name);
    const sleeps = ((flags ?? 0) & dormant) !== 0;
    const isRight = !sleeps && birthmarks.join() === this.#birthmark(reader, chains);
    this.#rightAt = isRight ? generation : undefined;
    return { isRight, sleeps, chains };
  }

  /** Name of the birthmark for these chains: a digest of this build's rules and of the kernel's description of them. */
  #birthmark(reader: RulesReader, chains: readonly DumpedObject[]): string {
    const rules = chains.length === 0 ? [] : reader.rules(guardTable);
    const hash = createHash('sha256').update(this.#table.items.flatMap(printItem).join('\n'));
    for (const { name, settings } of chains.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      if (isBirthmark({ name })) continue;
      const digest = createHash('sha256');
      for (const [, value] of settings) digest.update(value);
      for (const { chain, expressions } of rules) if (chain === name) digest.update(expressions);
      hash.update(`${name}${digest.digest('hex')}`);
    }
    return birthmarkName(this.#options.ipFamily, hash.digest('hex').slice(0, 16));
  }
}

function isBirthmark({ name }: Pick<DumpedObject, 'name'>): boolean {
  return name.startsWith(birthmarkPrefix);
}

interface Look {
  readonly isRight: boolean;
  /** The table is inactive (`flags dormant`). */
  readonly sleeps: boolean;
  /** Of this family. */
  readonly chains: readonly DumpedObject[];
}
