import { CommandError, type CommandResult } from '@switchyard/host';
import { ScriptedRunner, type ScriptedCommand } from '@switchyard/host/testing';
import { expect, test } from 'vitest';
import { detectVariant } from './detect-variant.ts';

const { signal } = new AbortController();
const missing = new CommandError('notFound', 'cannot run it', { file: 'x', args: [] });
const version = (file: string, told: string | Error): ScriptedCommand => ({
  file,
  args: ['--version'],
  answer: typeof told === 'string' ? { stdout: `iptables v1.8.9 (${told})\n` } : told,
});
const save = (file: string, args: readonly string[], answer: Partial<CommandResult>): ScriptedCommand => ({
  file: `${file}-save`,
  args,
  answer,
});

async function detected(...commands: readonly ScriptedCommand[]): ReturnType<typeof detectVariant> {
  const runner = new ScriptedRunner(commands);
  const result = await detectVariant(runner, ['IPv4'], signal);
  runner.assertDone();
  return result;
}

test('a variant that is installed alone is used, regardless of the kernel', async () => {
  const commands = [
    version('iptables-nft', missing),
    version('iptables', missing),
    version('iptables-legacy', 'legacy'),
  ];
  expect(await detected(...commands)).toEqual({ variant: 'legacy', reason: 'only the legacy variant is installed' });
});

test('where nothing is installed it is nft, for the probe to complain', async () => {
  const commands = ['iptables-nft', 'iptables', 'iptables-legacy', 'iptables'].map((file) => version(file, missing));
  expect(await detected(...commands)).toEqual({ variant: 'nft', reason: 'no iptables is installed' });
});

test('a variant that the kernel does not have is passed over', async () => {
  const rules = '*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j ACCEPT\nCOMMIT\n';
  const unable = { exitCode: 1, stderr: 'Could not fetch rule set generation id: Invalid argument\n' };
  const commands = [
    version('iptables-nft', 'nf_tables'),
    version('iptables-legacy', 'legacy'),
    save('iptables-nft', ['-t', 'mangle'], unable),
    save('iptables-legacy', [], { stdout: rules }),
    save('iptables-nft', [], unable),
  ];
  expect(await detected(...commands)).toEqual({
    variant: 'legacy',
    reason: 'rules in iptables-legacy: 1, in iptables-nft: 0',
  });
});
