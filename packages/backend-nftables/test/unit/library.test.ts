import { type ApplyRequest, type DataplaneBackend } from '@switchyard/core/engine';
import { type ForwardingTable, noopLogger } from '@switchyard/core';
import { situation, there } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { nftablesBackend } from '../../src/index.ts';
import { FakeNft } from '../../src/testing/fake-nft.ts';
import { Driven, signal } from './support.ts';

describe('as a library, under names of its own', () => {
  const cart = (endpoint: string): ForwardingTable => situation({ cart: { endpoints: [there(endpoint)] } });
  const tableNames = ['switchyard-other', 'switchyard-other-2'] as const;
  const open = (nft: FakeNft): Promise<DataplaneBackend> =>
    nftablesBackend.open({ openTransport: nft.openTransport, logger: noopLogger, tableNames }, 'IPv4', signal);
  const full = (table: ForwardingTable): ApplyRequest => ({ table, scope: { kind: 'full' } });

  test('neither touches nor sees the tables of the nftables mode, nor they its own', async () => {
    const nft = new FakeNft();
    const mode = await Driven.open(nft);
    await mode.full(cart('10.244.2.1'));
    const before = await mode.dump();
    await using library = await open(nft);
    expect([await library.dump(signal), await library.observers.age?.read(signal)]).toEqual(['', undefined]);
    await library.apply(full(cart('10.244.2.2')), signal);
    expect([...nft.ruleset.tables.keys()]).toEqual(['switchyard', 'switchyard-other']);
    await mode.backend.cleanup(signal);
    expect([...nft.ruleset.tables.keys()]).toEqual(['switchyard-other']);
    expect([before.includes('10.244.2.1'), (await library.dump(signal)).includes('10.244.2.2')]).toEqual([true, true]);
    expect(await library.cleanup(signal)).toEqual(['nftables table inet switchyard-other']);
  });

  test('adds wanted elements, and keeps stale ones if the request says so', async () => {
    const nft = new FakeNft();
    await using library = await open(nft);
    const texts = (): readonly string[] => nft.elements('switchyard-other', 'frontends4');
    const till = situation({ till: { clusterIps: ['10.96.0.77'], endpoints: [there('10.244.2.7')] } });
    await library.apply(full(cart('10.244.2.1')), signal);
    const before = texts();
    const scope = { kind: 'full', stale: 'keep' } as const;
    expect(await library.apply({ table: till, scope }, signal)).toMatchObject({ status: 'applied' });
    const both = texts();
    expect(both).toEqual(expect.arrayContaining([...before]));
    expect(both.length).toBe(before.length + 1);
    await library.apply(full(till), signal);
    expect(texts()).toEqual(both.filter((text) => !before.includes(text)));
  });
});
