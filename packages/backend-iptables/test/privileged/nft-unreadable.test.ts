import { afterAll, beforeAll, expect, test } from 'vitest';
import { openIptablesClient } from '../../src/client/create-client.ts';
import { UnreadableTableError } from '../../src/client/unreadable-table.ts';
import { createNamespace, signal, type TestNamespace } from './support.ts';

let namespace: TestNamespace;
beforeAll(async () => {
  namespace = await createNamespace();
});
afterAll(() => namespace[Symbol.asyncDispose]());

const foreign = 'table ip nat { map m { type ipv4_addr : ipv4_addr; }; chain THEIRS { dnat to ip saddr map @m; }; }';

test('a table that nft wrote into is told of; single chains of ours can be read and written all the same', async () => {
  const client = await openIptablesClient({ runner: namespace.runner, ipFamily: 'IPv4', variant: 'nft' }, signal);
  await client.restore('*nat\n:OURS - [0:0]\n-A OURS -j RETURN\nCOMMIT\n', signal);
  await namespace.run('nft -f -', foreign);
  const nothing = { chain: () => undefined, rule: () => undefined };
  await expect(client.read('nat', nothing, signal)).rejects.toThrow(UnreadableTableError);
  expect(await client.list('nat', 'OURS', signal)).toHaveLength(1);
  expect(await client.list('nat', 'THEIRS', signal)).toBeUndefined();
  expect(await client.restore('*nat\n:OURS - [0:0]\nCOMMIT\n', signal)).toEqual({ status: 'done' });
  expect(await client.list('nat', 'OURS', signal)).toEqual([]);
  expect(await namespace.run('nft list chain ip nat THEIRS')).toContain('map @m');
});
