import { noopLogger } from '@switchyard/core';
import { expect, test } from 'vitest';
import { nftablesBackend, type NftablesHost } from './index.ts';
import { FakeNft } from './testing/fake-nft.ts';

const { signal } = new AbortController();
const host = (transport: NftablesHost['transport']): NftablesHost => ({
  runner: new FakeNft(),
  logger: noopLogger,
  transport,
  netns: '/run/netns/swy-nowhere',
});

test('a host whose netlink socket cannot be opened is unusable, and says why: nft is not taken instead', async () => {
  const reason = /^cannot open a netlink socket .*swy-nowhere: open failed with ENOENT/;
  expect(await nftablesBackend.probe(host('netlink'), signal)).toEqual({
    status: 'unusable',
    reasons: [expect.stringMatching(reason)],
  });
  await expect(nftablesBackend.open(host('netlink'), 'IPv4', signal)).rejects.toThrow(reason);
});

test('nft needs no socket', async () => {
  expect(await nftablesBackend.probe(host('cli'), signal)).toMatchObject({ status: 'usable' });
  await (await nftablesBackend.open(host('cli'), 'IPv4', signal))[Symbol.asyncDispose]();
});
