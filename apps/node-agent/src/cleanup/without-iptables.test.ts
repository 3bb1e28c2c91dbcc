import { HostError } from '@switchyard/core';
import { birthmarkChain, type IptablesPlace } from '@switchyard/netfilter/iptables';
import { CommandError, type CommandRunner } from '@switchyard/host';
import { expect, test } from 'vitest';
import { cleanUp } from './clean-up.ts';
import { refuseUnseenRules, type NftTables } from './tables.ts';
import { backendHost, memoryTables } from '../testing/backend-host.ts';

const { signal } = new AbortController();
const nft4: IptablesPlace = { ipFamily: 'IPv4', variant: 'nft' };
const legacy6: IptablesPlace = { ipFamily: 'IPv6', variant: 'legacy' };

/** A machine without iptables. */
const runner: CommandRunner = {
  run: async (file, args) => {
    throw new CommandError('notFound', `cannot run ${file}: no such program in PATH; install it`, { file, args });
  },
};

/** A kernel with these chains in table mangle of IPv4. */
const tablesOf = (listChains: NftTables['listChains']): NftTables => ({ ...memoryTables(), listChains });

/** A kernel with these tables of the legacy programs. */
const filesOf = (tables: Readonly<Record<string, string>>) => ({
  read: (path: string) => tables[path],
  write: () => undefined,
});

const absent = tablesOf(async () => ['PREROUTING']);
const there = tablesOf(async ({ family, table }) => (`${family} ${table}` === 'ip mangle' ? [birthmarkChain] : []));
const refused = tablesOf(() => Promise.reject(new HostError('test.list', 'netlink failed with EPERM')));

test.each([
  ['the table has no birthmark', nft4, absent, {}],
  ['the kernel has no legacy tables', legacy6, there, {}],
  ['no legacy table is where the birthmark would be', legacy6, there, { '/proc/net/ip6_tables_names': 'nat\nfilter' }],
  ['legacy tables are of the other family', legacy6, there, { '/proc/net/ip_tables_names': 'mangle' }],
] as const)('where %s there are no rules of this agent', async (_, place, tables, legacy) => {
  await expect(refuseUnseenRules({ tables, files: filesOf(legacy) }, place)).resolves.toBeUndefined();
});

test.each([
  ['the table has our birthmark', nft4, there, {}, /rules of this agent are in the tables of iptables-nft/],
  ['tables cannot be listed', nft4, refused, {}, /EPERM/],
  [
    'the kernel has legacy tables',
    legacy6,
    absent,
    { '/proc/net/ip6_tables_names': 'mangle\nnat' },
    /the kernel has tables of ip6tables-legacy \(mangle, nat\), which were not looked at/,
  ],
] as const)('where %s that is refused', async (_, place, tables, legacy, said) => {
  await expect(refuseUnseenRules({ tables, files: filesOf(legacy) }, place)).rejects.toThrow(said);
});

test('a clean-up without iptables is not complete where the kernel has tables of it', async () => {
  const host = backendHost(runner, absent);
  const clean = (tables: Readonly<Record<string, string>>) =>
    cleanUp({ backendHost: host, files: filesOf(tables), kubeProxy: false }, signal);
  expect(await clean({})).toEqual({ removed: [], kept: [], skipped: [], failures: [] });
  const { failures } = await clean({ '/proc/net/ip_tables_names': 'nat\nmangle\nfilter' });
  expect(failures.map(({ message }) => message)).toEqual([expect.stringContaining('iptables-legacy')]);
});
