import { noopLogger } from '@switchyard/core';
import { expect, test } from 'vitest';
import { nftablesBackend, type NftablesHost } from './index.ts';

const { signal } = new AbortController();
const host: NftablesHost = { logger: noopLogger, netns: '/run/netns/swy-nowhere' };

test('a host whose netlink socket cannot be opened is unusable, and says why', async () => {
  const reason = /^cannot open a netlink socket .*swy-nowhere: open failed with ENOENT/;
  expect(await nftablesBackend.probe(host, signal)).toEqual({
    status: 'unusable',
    reasons: [expect.stringMatching(reason)],
  });
  await expect(nftablesBackend.open(host, 'IPv4', signal)).rejects.toThrow(reason);
});
