import type { ApplyOutcome } from '@switchyard/core/engine';
import { noopLogger, seconds } from '@switchyard/core';
import { situation, there } from '@switchyard/core/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { IptablesBackend } from '../../src/backend.ts';
import { UnreadableTableError } from '../../src/kernel/client/create-client.ts';
import { openIptablesClient } from '../../src/testing/open-client.ts';
import { createNamespace, signal, type TestNamespace } from './support.ts';

let namespace: TestNamespace;
beforeAll(async () => {
  namespace = await createNamespace();
});
afterAll(() => namespace[Symbol.asyncDispose]());

test('own rules in a chain that cannot be listed are not written once more', async () => {
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

test('a rule of nft in an own chain that iptables does not delete is named, and new Services are written', async () => {
  await using other = await createNamespace();
  const { runner } = other;
  const client = await openIptablesClient({ runner, ipFamily: 'IPv4', variant: 'nft' }, signal);
  const choices = { masqueradeMark: 0x4000, dropInvalid: true, randomFully: true, nfacct: false };
  const parts = { client, runner, logger: noopLogger, choices, syncPeriod: seconds(30) };
  const backend = new IptablesBackend(parts);
  const rules = (): Promise<string> => other.run('nft --stateless list chain ip nat KUBE-SERVICES');
  const full = (services: number): Promise<ApplyOutcome> => {
    const named = ['cart', 'pay', 'ship'].slice(0, services).map((name, at) => {
      return [name, { clusterIps: [`10.96.0.${at + 1}`], endpoints: [there(`10.244.2.${at + 1}`)] }] as const;
    });
    return backend.apply({ table: situation(Object.fromEntries(named)), scope: { kind: 'full' } }, signal);
  };
  expect(await full(1)).not.toHaveProperty('unremoved');
  await other.run('nft add rule ip nat KUBE-SERVICES ip saddr 10.0.0.9 drop');
  const unremoved = {
    message: expect.stringMatching(/^cannot remove rule "-s 10\.0\.0\.9\/32 -j DROP" from chain KUBE-SERVICES /),
  };
  expect(await full(2)).toMatchObject({ status: 'applied', unremoved });
  expect(await rules()).toMatch(/ip daddr 10\.96\.0\.2/);

  // With this iptables can read neither the chain nor the table: the chain is written anew, and the drop goes too.
  await other.run('nft -f -', 'add rule ip nat KUBE-SERVICES numgen inc mod 2 0 drop');
  expect(await full(3)).toMatchObject({ status: 'applied' });
  expect(await rules()).toMatch(/ip daddr 10\.96\.0\.3/);
  expect(await rules()).not.toMatch(/drop/);
  expect(await full(3)).toEqual({ status: 'applied', writes: 0 });
});

const foreign = 'table ip nat { map m { type ipv4_addr : ipv4_addr; }; chain THEIRS { dnat to ip saddr map @m; }; }';

test('a table that nft wrote into is reported; its single own chains can still be read and written', async () => {
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
