import { HostError, type Logger, noopLogger } from '@switchyard/core';
import { ScriptedRunner, type ScriptedCommand } from '@switchyard/host/testing';
import type { PacketCounters } from '@switchyard/netfilter';
import { expect, test } from 'vitest';
import { openIptables } from './facts.ts';

const { signal } = new AbortController();
const version = (file: string, variant: string): ScriptedCommand => ({
  file,
  args: ['--version'],
  answer: { stdout: `iptables v1.8.9 (${variant})\n` },
});
const unknownCounter =
  'iptables-nft-restore v1.8.9 (nf_tables): \nline 3: RULE_APPEND failed (No such file or directory): rule in chain SWITCHYARD-PROBE\n';
/** In a namespace in which there are no counters. */
const trial = (answer: ScriptedCommand['answer'] = { exitCode: 4, stderr: unknownCounter }): ScriptedCommand => ({
  file: 'unshare',
  args: ['--net', 'iptables-nft-restore', '--noflush', '-w', '5'],
  stdin: /^\*filter\n:SWITCHYARD-PROBE - .*\n-A SWITCHYARD-PROBE -m nfacct .*\nCOMMIT\n$/,
  answer,
});

/** Opens the nft variant, and returns what was made and told. */
async function opened(commands: readonly ScriptedCommand[], refusal?: Error) {
  const made: string[] = [];
  const told: unknown[] = [];
  const packetCounters: PacketCounters = {
    ensure: (name) => void made.push(name),
    read: () => {
      if (refusal !== undefined) throw refusal;
      return new Map();
    },
  };
  const logger: Logger = { ...noopLogger, info: (message, fields) => told.push(message, fields) };
  const runner = new ScriptedRunner([version('iptables-nft', 'nf_tables'), ...commands]);
  const host = { runner, variant: 'nft', logger, packetCounters } as const;
  const { facts, prepare } = await openIptables(host, 'IPv4', signal);
  runner.assertDone();
  return { facts, made, told, prepare };
}

const facts = { variant: 'nft', version: '1.8.9', randomFully: true, nfacct: true };

test('rules may name packet counters where the kernel misses the counter only; they are made before rules are written', async () => {
  const { prepare, ...result } = await opened([trial()]);
  expect(result).toEqual({ facts, made: [], told: ['iptables opened', { ipFamily: 'IPv4', ...facts }] });
  prepare();
  expect(result.made).toEqual(['ct_state_invalid_dropped_pkts', 'localhost_nps_accepted_pkts']);
});

test('without them rules do: the kernel has none', async () => {
  const result = await opened([], new HostError('native.EINVAL', 'cannot make the packet counter'));
  result.prepare();
  expect(result).toMatchObject({ facts: { ...facts, nfacct: false }, made: [] });
  expect(result.told[1]).toMatchObject({ nfacctMissing: 'cannot make the packet counter' });
});

test.each([
  ['the kernel', 'Warning: Extension nfacct revision 0 not supported, missing kernel module?\nline 3 failed\n'],
  ['iptables', "iptables-nft-restore v1.8.9 (nf_tables): Couldn't load match `nfacct':No such file or directory\n"],
])('without them rules do: %s has no match for them', async (_, stderr) => {
  const result = await opened([trial({ exitCode: 4, stderr })]);
  expect(result.facts).toEqual({ ...facts, nfacct: false });
  expect(result.told[1]).toMatchObject({ nfacctMissing: expect.stringContaining('nfacct') });
});

test('an unexpected error is not taken for a kernel without them', async () => {
  await expect(opened([], new Error('ours'))).rejects.toThrow('ours');
});

test('the variant is looked for in both families, and the reason is logged', async () => {
  const told: unknown[] = [];
  const logger: Logger = { ...noopLogger, info: (_, fields) => told.push(fields) };
  const packetCounters: PacketCounters = { ensure: () => undefined, read: () => new Map() };
  const mangle = '*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n';
  const runner = new ScriptedRunner([
    version('iptables-nft', 'nf_tables'),
    version('ip6tables-nft', 'nf_tables'),
    version('iptables-legacy', 'legacy'),
    version('ip6tables-legacy', 'legacy'),
    { file: 'iptables-nft-save', args: ['-t', 'mangle'], answer: { stdout: mangle } },
    { file: 'ip6tables-nft-save', args: ['-t', 'mangle'], answer: {} },
    trial(), // the version is known
  ]);
  await openIptables({ runner, variant: 'auto', logger, packetCounters }, 'IPv4', signal);
  runner.assertDone();
  expect(told).toMatchObject([{ variant: 'nft', variantBecause: 'chain KUBE-IPTABLES-HINT is in iptables-nft' }]);
});
