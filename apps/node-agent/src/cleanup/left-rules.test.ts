import type { CommandResult, CommandRunner } from '@switchyard/host';
import { describe, expect, test } from 'vitest';
import { cleanUp } from './clean-up.ts';
import { type LeftRules, ourVariant, removeLeftRules } from './left-rules.ts';
import { nothingRemoved } from './removal.ts';
import { backendHost, memoryTables } from '../testing/backend-host.ts';

const { signal } = new AbortController();
const chains = '*nat\n:POSTROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n-A POSTROUTING -j KUBE-SERVICES\nCOMMIT\n';
const mark = '*mangle\n:SWITCHYARD - [0:0]\n-A SWITCHYARD -m comment --comment "switchyard 1 5"\nCOMMIT\n';
const forward =
  '*filter\n:FORWARD DROP [0:0]\n:KUBE-FORWARD - [0:0]\n-A FORWARD -j KUBE-FORWARD\n-A KUBE-FORWARD -j ACCEPT\nCOMMIT\n';

/** A machine without tables of nftables, and with these rules by program; tables of the name `refused` cannot be written, those of `unreadable` not read. */
function machine(saves: Readonly<Record<string, string>>, refused?: string, unreadable?: string) {
  const written: string[] = [];
  const asked: string[] = [];
  const done: CommandResult = { exitCode: 0, stdout: '', stderr: '' };
  const runner: CommandRunner = {
    run: async (file, args, { stdin, onStdout }) => {
      asked.push(file);
      if (args.includes('--version'))
        return { ...done, stdout: `v1.8.9 (${file.includes('nft') ? 'nf_tables' : 'legacy'})` };
      if (file === `${unreadable}-save`) return { ...done, exitCode: 1, stderr: 'Operation not permitted' };
      if (file.endsWith('-save')) {
        onStdout?.(saves[file.replace('-save', '')] ?? '');
        return done;
      }
      const table = /\*(\w+)/.exec(String(stdin))?.[1];
      if (table === refused) return { ...done, exitCode: 4, stderr: 'CHAIN_DEL failed (Device or resource busy)' };
      written.push(`${file.replace('-restore', '')} ${table}`);
      return done;
    },
  };
  const has = (program: string): boolean => Object.keys(saves).includes(program);
  const tables = {
    ...memoryTables(),
    listTables: async (family: string) => (family === 'ip' && has('iptables-nft') ? ['nat'] : []),
    listChains: async () =>
      (saves['iptables-nft'] ?? '').split('\n').flatMap((line) => /^:(\S+)/.exec(line)?.[1] ?? []),
  };
  const host = backendHost(runner, tables);
  const names = { read: () => (has('iptables-legacy') ? 'nat' : undefined), write: () => undefined };
  const left = (kubeProxyRules: 'remove' | 'keep'): Promise<LeftRules> =>
    removeLeftRules(
      { mode: 'nftables', variant: undefined, kubeProxyRules, backendHost: host, files: names, ipFamilies: ['IPv4'] },
      signal,
    );
  return { written, asked, host, files: names, left };
}

describe('the nftables mode', () => {
  test('removes chains with the birthmark of the agent regardless of kubeProxyRules', async () => {
    const { written, left } = machine({ 'iptables-nft': chains + mark, 'iptables-legacy': chains });
    const { ours, kubeProxy } = await left('keep');
    expect(written).toEqual(['iptables-nft nat', 'iptables-nft mangle']);
    expect(ours.removed).toHaveLength(2);
    expect(kubeProxy).toEqual({ removed: [], kept: [], skipped: [], failures: [] });
  });

  test("takes the others for kube-proxy's, which go if that is asked for", async () => {
    const { written, left } = machine({ 'iptables-nft': chains + mark, 'iptables-legacy': chains });
    const { ours, kubeProxy } = await left('remove');
    expect(written).toEqual(['iptables-nft nat', 'iptables-nft mangle', 'iptables-legacy nat']);
    expect([ours.removed.length, kubeProxy.removed]).toEqual([
      2,
      ['iptables-legacy, table nat: 1 chain, 0 rules, 1 jump to them'],
    ]);
  });

  test('keeps what lets Service traffic pass, ours too, where the policy of FORWARD is to drop', async () => {
    const { written, left } = machine({ 'iptables-nft': chains + forward + mark });
    const { ours } = await left('remove');
    expect(written).toEqual(['iptables-nft nat', 'iptables-nft mangle']);
    expect(ours.kept).toEqual([expect.stringContaining('chain KUBE-FORWARD of iptables-nft, table filter')]);
  });
});

test('where no chain can be ours or of kube-proxy, no program is run', async () => {
  const { asked, left } = machine({
    'iptables-nft': '*nat\n:POSTROUTING ACCEPT [0:0]\n:CNI-HOSTPORT - [0:0]\nCOMMIT\n',
  });
  const { ours, kubeProxy } = await left('remove');
  expect([asked, ours, kubeProxy]).toEqual([[], nothingRemoved, nothingRemoved]);
});

test('the iptables mode does not touch the variant that it writes, and no iptables while it does not know which', async () => {
  const { written, host, files } = machine({ 'iptables-nft': chains + mark, 'iptables-legacy': chains + mark });
  const options = {
    mode: 'iptables',
    kubeProxyRules: 'remove',
    backendHost: host,
    files,
    ipFamilies: ['IPv4'],
  } as const;
  await removeLeftRules({ ...options, variant: undefined }, signal);
  expect(written).toEqual([]);
  await removeLeftRules({ ...options, variant: 'nft' }, signal);
  expect(written).toEqual(['iptables-legacy nat', 'iptables-legacy mangle']);
});

describe('where the rules of this agent are', () => {
  const where = (saves: Readonly<Record<string, string>>, unreadable?: string) =>
    ourVariant(machine(saves, undefined, unreadable).host, ['IPv4'], signal);

  test.each([
    ['is nowhere on a node without our birthmark', { 'iptables-nft': chains }, undefined, undefined],
    ['is recognized by the birthmark', { 'iptables-legacy': mark }, undefined, 'legacy'],
    ['is returned if found, even if another place is unreadable', { 'iptables-nft': mark }, 'iptables-legacy', 'nft'],
  ] as const)('%s', async (_, saves, unreadable, expected) => {
    expect(await where(saves, unreadable)).toBe(expected);
  });

  test('is refused where rules cannot be read', async () => {
    await expect(where({ 'iptables-nft': chains }, 'iptables-legacy')).rejects.toThrow(
      /cannot determine whether iptables holds rules of this agent: .*iptables-legacy, which needs CAP_NET_RAW/,
    );
  });
});

describe('the clean-up', () => {
  const files = (tcp: string) => ({
    read: (path: string) => (path === '/proc/net/tcp' ? tcp : undefined),
    write: () => undefined,
  });
  const listening = '   0: 00000000:2810 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1\n';

  test('removes chains with our birthmark, and no others', async () => {
    const { written, host } = machine({ 'iptables-nft': chains + forward + mark, 'iptables-legacy': chains });
    const { removed } = await cleanUp({ backendHost: host, files: files(''), kubeProxy: false }, signal);
    expect(written).toEqual(['iptables-nft nat', 'iptables-nft filter', 'iptables-nft mangle']);
    expect(removed).toHaveLength(3);
  });

  test('leaves the birthmark where something else stays, so that it can be repeated', async () => {
    const { written, host, left } = machine({ 'iptables-nft': mark + chains + forward }, 'nat');
    const { failures } = await cleanUp({ backendHost: host, files: files(''), kubeProxy: false }, signal);
    expect(failures).toHaveLength(1);
    expect((await left('keep')).ours.failures).toHaveLength(1);
    expect(written).not.toContain('iptables-nft mangle');
  });

  test('removes the birthmark alone where a kube-proxy was started since: the chains are its own now', async () => {
    const { written, host } = machine({ 'iptables-nft': chains + mark });
    const { kept } = await cleanUp({ backendHost: host, files: files(listening), kubeProxy: false }, signal);
    expect(written).toEqual(['iptables-nft mangle']);
    expect(kept).toEqual([expect.stringMatching(/^chains of iptables .* listens on port 10256/)]);
  });
});
