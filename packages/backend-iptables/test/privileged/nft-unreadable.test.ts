import { type ApplyOutcome, noopLogger, seconds } from '@switchyard/core';
import { situation, there } from '@switchyard/core/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { IptablesBackend } from '../../src/backend.ts';
import { openIptablesClient } from '../../src/client/create-client.ts';
import { UnreadableTableError } from '../../src/client/unreadable-table.ts';
import { createNamespace, signal, type TestNamespace } from './support.ts';

let namespace: TestNamespace;
beforeAll(async () => {
  namespace = await createNamespace();
});
afterAll(() => namespace[Symbol.asyncDispose]());

test('rules of ours in a chain that cannot be listed are not written once more', async () => {
  await using other = await createNamespace();
  const { runner } = other;
  const client = await openIptablesClient({ runner, ipFamily: 'IPv4', variant: 'nft' }, signal);
  const choices = { masqueradeMark: 0x4000, dropInvalid: true, randomFully: true, nfacct: false };
  const table = situation({ cart: { endpoints: [there('10.244.2.1')] } });
  const rules = (): Promise<string> => other.run('nft --stateless list chain ip nat PREROUTING');
  const full = (): Promise<ApplyOutcome> => {
    const backend = new IptablesBackend({ client, runner, logger: noopLogger, choices, syncPeriod: seconds(30) });
    return backend.apply({ table, scope: { kind: 'full' } }, signal);
  };
  expect(await full()).toMatchObject({ status: 'applied' });
  const map = 'map m { type ipv4_addr : ipv4_addr; }; chain PREROUTING { dnat to ip saddr map @m; };';
  await other.run('nft -f -', `table ip nat { ${map} }`);
  expect(await client.list('nat', 'PREROUTING', signal)).toBeUndefined();
  const before = await rules();
  expect(before.match(/jump KUBE-SERVICES/g)).toHaveLength(1);
  expect(await full()).toMatchObject({ status: 'applied' });
  expect(await rules()).toBe(before);
});

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
