import { CommandError, type CommandResult } from '@switchyard/host';
import { type ScriptedCommand, ScriptedRunner } from '@switchyard/host/testing';
import { describe, expect, test } from 'vitest';
import { createIptablesClient, type IptablesClientOptions, UnreadableTableError } from './create-client.ts';
import { openIptablesClient } from '../../testing/open-client.ts';
import type { RestoreResult } from './iptables-client.ts';

const { signal } = new AbortController();
const nft = { ipFamily: 'IPv4', variant: 'nft', version: '1.8.9', command: 'iptables-nft' } as const;
const legacy = { ...nft, variant: 'legacy', command: 'iptables-legacy' } as const;
type Programs = Omit<IptablesClientOptions, 'runner'>;

async function withClient<T>(
  programs: Programs,
  command: ScriptedCommand,
  use: (client: ReturnType<typeof createIptablesClient>) => Promise<T>,
): Promise<T> {
  const runner = new ScriptedRunner([command]);
  const result = await use(createIptablesClient({ runner, ...programs }));
  runner.assertDone();
  return result;
}

describe('restore', () => {
  const restored = (
    programs: Programs,
    text: string | Iterable<string>,
    command: ScriptedCommand,
  ): Promise<RestoreResult> => withClient(programs, command, (client) => client.restore(text, signal));

  test.each<[string, Programs, readonly string[]]>([
    ['nft', { ...nft, version: '1.8.4' }, ['-w', '5']],
    ['legacy of today', legacy, ['-w', '5']],
    ['legacy that looks at the lock from time to time', { ...legacy, version: '1.8.7' }, ['-w', '5', '-W', '100000']],
  ])('%s waits for the lock', async (_, programs, wait) => {
    const command = { file: `${programs.command}-restore`, args: ['--noflush', ...wait], stdin: '*nat\nCOMMIT\n' };
    expect(await restored(programs, ['*nat\nCOM', 'MIT\n'], command)).toEqual({ status: 'done' });
  });

  const refused = (stderr: string): ScriptedCommand => ({
    file: 'iptables-nft-restore',
    args: ['--noflush', '-w', '5'],
    answer: { exitCode: 4, stderr },
  });

  test.each([2, 3, 4, 5])('the refused line is returned, COMMIT or not: %d', async (line) => {
    const result = await restored(
      nft,
      '*nat\n:A - [0:0]\nCOMMIT\n*filter\nCOMMIT\n',
      refused(`iptables-restore: line ${line} failed\n`),
    );
    expect(result).toMatchObject({ status: 'refused', line, isTransient: false });
  });

  test('a transient refusal is distinguished from a lasting one', async () => {
    const locked = refused('Another app is currently holding the xtables lock. Stopped waiting after 5s.\n');
    expect(await restored(nft, '', locked)).toMatchObject({ status: 'refused', line: undefined, isTransient: true });
  });

  test('where no text would be taken, it is no refusal of this one', async () => {
    const denied = refused('Could not fetch rule set generation id: Permission denied (you must be root)\n');
    await expect(restored(nft, '', denied)).rejects.toThrow(
      'cannot write rules with iptables-nft: iptables-nft-restore exited with 4 and said: Could not fetch rule set generation ' +
        'id: Permission denied (you must be root); run with CAP_NET_ADMIN, for the legacy variant with CAP_NET_RAW too',
    );
  });
});

describe('read', () => {
  const reader = { chain: () => undefined, rule: () => undefined };
  const read = (answer: ScriptedCommand['answer'] = {}): Promise<void> =>
    withClient(nft, { file: 'iptables-nft-save', args: ['-t', 'nat'], answer }, (client) =>
      client.read('nat', reader, signal),
    );

  test.each([
    [
      'one that nft wrote into',
      { stdout: "# Table `nat' is incompatible, use 'nft' tool.\n" },
      UnreadableTableError,
      "'nft list table ip nat'",
    ],
    ['one that ends early', { stdout: '*nat\n:A - [0:0]\n' }, Error, 'iptables-nft-save ended before the table did'],
    [
      'one that may not be read',
      { exitCode: 4, stderr: 'Permission denied (you must be root)\n' },
      CommandError,
      'CAP_NET_ADMIN',
    ],
  ])('a table is not taken for an empty one: %s', async (_, answer, kind, words) => {
    const error: unknown = await read(answer).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(kind);
    expect((error as Error).message).toMatch(/^cannot read table nat of iptables-nft: /);
    expect((error as Error).message).toContain(words);
  });
});

describe('list', () => {
  const list = (answer: Partial<CommandResult>) =>
    withClient(nft, { file: 'iptables-nft', args: ['-w', '5', '-t', 'nat', '-S', 'A', '-v'], answer }, (client) =>
      client.list('nat', 'A', signal),
    );

  test.each([
    ['nft before 1.8.8, and legacy', 'iptables: No chain/target/match by that name.\n'],
    ['nft', "iptables v1.8.9 (nf_tables): chain `A' in table `nat' is incompatible, use 'nft' tool.\n"],
  ])('%s: there is no such chain', async (_, stderr) => {
    expect(await list({ exitCode: 1, stderr })).toBeUndefined();
  });

  test('another failure is one', async () => {
    await expect(list({ exitCode: 4, stderr: 'Another app is currently holding the xtables lock.\n' })).rejects.toThrow(
      'cannot list chain A of table nat of iptables-nft: iptables-nft exited with 4 and said: Another app',
    );
  });
});

test('a client is not opened where nothing is installed', async () => {
  const missing = new CommandError('notFound', 'cannot run it', { file: 'x', args: [] });
  const runner = new ScriptedRunner(
    ['iptables-nft', 'iptables'].map((file) => ({ file, args: ['--version'], answer: missing })),
  );
  await expect(openIptablesClient({ runner, ipFamily: 'IPv4', variant: 'nft' }, signal)).rejects.toThrow(
    'cannot write rules with iptables-nft: it is not installed; install the package iptables',
  );
  runner.assertDone();
});
