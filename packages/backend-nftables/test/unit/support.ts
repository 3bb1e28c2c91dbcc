import { type DataplaneBackend } from '@switchyard/core/engine';
import { type IpFamily, type Logger, noopLogger } from '@switchyard/core';
import { DrivenBackend } from '@switchyard/core/testing';
import { nftablesBackend } from '../../src/index.ts';
import { birthmarkSet } from '../../src/render/names.ts';
import type { TableDescription } from '../../src/render/rules/model.ts';
import { FakeNft } from '../../src/testing/fake-nft.ts';

export const { signal } = new AbortController();

/** A backend over a fake, and the last table given to it. */
export class Driven extends DrivenBackend {
  readonly nft: FakeNft;

  private constructor(nft: FakeNft, backend: DataplaneBackend) {
    super(backend);
    this.nft = nft;
  }

  static async open(
    nft: FakeNft = new FakeNft(),
    family: IpFamily = 'IPv4',
    logger: Logger = noopLogger,
  ): Promise<Driven> {
    return new Driven(nft, await nftablesBackend.open({ openTransport: nft.openTransport, logger }, family, signal));
  }

  dump(): Promise<string> {
    return this.backend.dump(signal);
  }

  /** The last script sent. */
  get script(): string {
    return this.nft.scripts.at(-1) ?? '';
  }
}

/** The same rules as those of another build: with another birthmark. */
export function withBirthmark(table: TableDescription, mark: number): TableDescription {
  const items = table.items.map((item) =>
    item.kind !== 'chain' && item.name === birthmarkSet ? { ...item, elements: [mark] } : item,
  );
  return { ...table, items };
}
