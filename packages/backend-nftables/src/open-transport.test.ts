import { noopLogger } from '@switchyard/core';
import { expect, test } from 'vitest';
import { nftablesBackend, type NftablesHost } from './index.ts';
import { ensureTable } from './kernel/tables.ts';
import { hasOurRules } from './open-transport.ts';
import { tableNames } from './render/names.ts';
import { FakeNft } from './testing/index.ts';

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

test('a kernel that has the rules of this build needs no trial of them, and one with others does', async () => {
  const kernel = new FakeNft();
  const known: NftablesHost = { logger: noopLogger, openTransport: kernel.openTransport };
  expect(await hasOurRules(known, signal)).toBe(false);
  await using transport = kernel.openTransport();
  await ensureTable({ transport, names: tableNames }, signal);
  expect(await hasOurRules(known, signal)).toBe(true);
  const elsewhere = { ...known, tableNames: ['other', 'other-2'] } as const;
  expect(await hasOurRules(elsewhere, signal)).toBe(false);
});
