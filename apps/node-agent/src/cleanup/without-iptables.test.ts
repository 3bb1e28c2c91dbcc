import type { CommandResult, CommandRunner } from '@switchyard/host';
import { CommandError, type IptablesPlace } from '@switchyard/host';
import { expect, test } from 'vitest';
import { cleanUp } from './clean-up.ts';
import { refuseUnseenRules } from './without-iptables.ts';
import { backendHost } from '../testing/backend-host.ts';

const { signal } = new AbortController();
const nft4: IptablesPlace = { ipFamily: 'IPv4', variant: 'nft' };
const legacy6: IptablesPlace = { ipFamily: 'IPv6', variant: 'legacy' };

/** A machine without iptables: what nft answers to `list chain`, undefined where it is not installed either. */
function runnerOf(nft: CommandResult | undefined): CommandRunner {
  return {
    run: async (file, args) => {
      if (file === 'nft' && nft !== undefined) return nft;
      throw new CommandError('notFound', `cannot run ${file}: no such program in PATH; install it`, { file, args });
    },
  };
}

/** A kernel with these tables of the legacy programs. */
const filesOf = (tables: Readonly<Record<string, string>>) => ({
  read: (path: string) => tables[path],
  write: () => undefined,
});

const absent: CommandResult = { exitCode: 1, stdout: '', stderr: 'Error: No such file or directory' };
const there: CommandResult = { exitCode: 0, stdout: 'table ip mangle {}', stderr: '' };
const refused: CommandResult = { exitCode: 1, stdout: '', stderr: 'Error: Operation not permitted' };

test.each([
  ['nft finds no birthmark', nft4, absent, {}],
  ['the kernel has no legacy tables', legacy6, undefined, {}],
  [
    'no legacy table is where the birthmark would be',
    legacy6,
    undefined,
    { '/proc/net/ip6_tables_names': 'nat\nfilter' },
  ],
  ['legacy tables are of the other family', legacy6, undefined, { '/proc/net/ip_tables_names': 'mangle' }],
] as const)('where %s nothing of ours is there', async (_, place, nft, tables) => {
  const asked = { runner: runnerOf(nft), files: filesOf(tables), place };
  await expect(refuseUnseenRules(asked, signal)).resolves.toBeUndefined();
});

test.each([
  ['nft finds our birthmark', nft4, there, {}, /rules of this agent are in the tables of iptables-nft/],
  ['nft may not look', nft4, refused, {}, /cannot tell .* iptables-nft, which is not installed: .* not permitted/],
  ['nft is not installed', nft4, undefined, {}, /cannot run nft/],
  [
    'the kernel has legacy tables',
    legacy6,
    absent,
    { '/proc/net/ip6_tables_names': 'mangle\nnat' },
    /the kernel has tables of ip6tables-legacy \(mangle, nat\), which were not looked at/,
  ],
] as const)('where %s that is refused', async (_, place, nft, tables, said) => {
  const asked = { runner: runnerOf(nft), files: filesOf(tables), place };
  await expect(refuseUnseenRules(asked, signal)).rejects.toThrow(said);
});

test('a clean-up without iptables is not complete where the kernel has tables of it', async () => {
  const host = backendHost(runnerOf(absent));
  const clean = (tables: Readonly<Record<string, string>>) =>
    cleanUp({ backendHost: host, files: filesOf(tables), kubeProxy: false }, signal);
  expect(await clean({})).toEqual({ removed: [], kept: [], skipped: [], failures: [] });
  const { failures } = await clean({ '/proc/net/ip_tables_names': 'nat\nmangle\nfilter' });
  expect(failures.map(({ message }) => message)).toEqual([expect.stringContaining('iptables-legacy')]);
});
