import { describe, expect, test } from 'vitest';
import { CommandError } from '@switchyard/host';
import { ScriptedRunner } from '@switchyard/host/testing';
import { findIptables, isVersionAtLeast } from './programs.ts';

const { signal } = new AbortController();
const missing = new CommandError('notFound', 'cannot run it', { file: 'x', args: [] });

describe('findIptables', () => {
  test.each([
    ['the named program where it is installed', ['iptables v1.8.9 (nf_tables)\n'], 'iptables-nft', '1.8.9'],
    [
      'the plain one where only that is, and of the variant',
      [missing, 'iptables v1.8.11 (nf_tables)\n'],
      'iptables',
      '1.8.11',
    ],
    ['none where the plain one is of the other variant', [missing, 'iptables v1.8.7 (legacy)\n'], undefined, undefined],
    [
      'none of nft where the plain one is older than the variants',
      [missing, 'iptables v1.6.1\n'],
      undefined,
      undefined,
    ],
    ['none where nothing is installed', [missing, missing], undefined, undefined],
  ])('finds %s', async (_, answers, command, version) => {
    const runner = new ScriptedRunner(
      answers.map((told, index) => ({
        file: index === 0 ? 'iptables-nft' : 'iptables',
        args: ['--version'],
        answer: typeof told === 'string' ? { stdout: told } : told,
      })),
    );
    const found = await findIptables(runner, { ipFamily: 'IPv4', variant: 'nft' }, signal);
    runner.assertDone();
    expect({ command: found?.command, version: found?.version }).toEqual({ command, version });
  });

  test.each([
    [139, 'iptables-nft was ended by SIGSEGV (exit status 139)'],
    [2, 'iptables-nft exited with 2'],
  ])('does not take a program that ends with %i for none', async (exitCode, said) => {
    const runner = new ScriptedRunner([{ file: 'iptables-nft', args: ['--version'], answer: { exitCode } }]);
    const finding = findIptables(runner, { ipFamily: 'IPv4', variant: 'nft' }, signal);
    await expect(finding).rejects.toThrow(said);
  });

  test('takes an iptables from before the variants for legacy, and finds IPv6 by its name', async () => {
    const runner = new ScriptedRunner([
      { file: 'ip6tables-legacy', args: ['--version'], answer: missing },
      { file: 'ip6tables', args: ['--version'], answer: { stdout: 'ip6tables v1.6.1\n' } },
    ]);
    const place = { ipFamily: 'IPv6', variant: 'legacy' } as const;
    expect(await findIptables(runner, place, signal)).toEqual({ ...place, command: 'ip6tables', version: '1.6.1' });
  });
});

test.each([
  ['1.8.9', '1.8.9', true],
  ['1.8.11', '1.8.9', true],
  ['1.8.7', '1.8.9', false],
  ['1.9', '1.8.9', true],
  ['1.8', '1.8.1', false],
  ['2.0', '1.8.9', true],
  ['', '1.0.0', false],
])('%j is at least %s: %s', (version, least, expected) => {
  expect(isVersionAtLeast(version, least)).toBe(expected);
});
