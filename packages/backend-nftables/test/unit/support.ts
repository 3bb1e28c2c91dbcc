import {
  type ApplyOutcome,
  type DataplaneBackend,
  diffTables,
  type ForwardingTable,
  type IpFamily,
  type Logger,
  noopLogger,
} from '@switchyard/core';
import { nftablesBackend } from '../../src/index.ts';
import { FakeNft } from '../../src/testing/fake-nft.ts';

export const { signal } = new AbortController();

/** A backend over a fake, and the last table given to it. */
export class Driven {
  readonly nft: FakeNft;
  readonly backend: DataplaneBackend;
  #last: ForwardingTable | undefined;

  private constructor(nft: FakeNft, backend: DataplaneBackend) {
    this.nft = nft;
    this.backend = backend;
  }

  static async open(
    nft: FakeNft = new FakeNft(),
    family: IpFamily = 'IPv4',
    logger: Logger = noopLogger,
  ): Promise<Driven> {
    return new Driven(nft, await nftablesBackend.open({ runner: nft, transport: 'cli', logger }, family, signal));
  }

  async full(table: ForwardingTable): Promise<ApplyOutcome> {
    this.#last = table;
    return this.backend.apply({ table, scope: { kind: 'full' } }, signal);
  }

  async next(table: ForwardingTable): Promise<ApplyOutcome> {
    const delta = diffTables(this.#last, table);
    this.#last = table;
    return this.backend.apply({ table, scope: { kind: 'delta', delta } }, signal);
  }

  dump(): Promise<string> {
    return this.backend.dump(signal);
  }

  /** The last script sent. */
  get script(): string {
    return this.nft.scripts.at(-1) ?? '';
  }
}
