import { release } from 'node:os';
import { type Logger, noopLogger } from '@switchyard/core';
import { CommandError } from '@switchyard/host';
import { type ScriptedCommand, ScriptedRunner } from '@switchyard/host/testing';
import { expect, test } from 'vitest';
import { probeHost, ruleFeatures } from './probe.ts';

const { signal } = new AbortController();
const missing = new CommandError('notFound', 'cannot run it', { file: 'x', args: [] });
const version = (text: string): ScriptedCommand => ({
  file: 'iptables-nft',
  args: ['--version'],
  answer: { stdout: `iptables v${text} (nf_tables)\n` },
});
const restore = ['iptables-nft-restore', '--noflush', '-w', '5'];
const scratch = (answer: ScriptedCommand['answer']): ScriptedCommand => ({
  file: 'unshare',
  args: ['--net', ...restore],
  stdin: /^\*\w+\n:SWITCHYARD-PROBE - \[0:0\]\n-A SWITCHYARD-PROBE /,
  answer: answer ?? {},
});

async function probed(...commands: readonly ScriptedCommand[]): ReturnType<typeof probeHost> {
  const runner = new ScriptedRunner(commands);
  const result = await probeHost({ runner, variant: 'nft', ipFamilies: ['IPv4'] }, signal);
  runner.assertDone();
  return result;
}

test.each<[string, readonly ScriptedCommand[], string]>([
  [
    'nothing installed',
    [
      { ...version(''), answer: missing },
      { file: 'iptables', args: ['--version'], answer: missing },
    ],
    'iptables-nft is not installed; install the package iptables',
  ],
  ['1.8.3', [version('1.8.3')], 'iptables-nft 1.8.3 is too old; 1.8.4 or newer is needed'],
  ['no version', [version('?')], 'iptables-nft of unknown version is too old; 1.8.4 or newer is needed'],
  [
    'no right',
    [
      version('1.8.9'),
      scratch({ exitCode: 4, stderr: 'Could not fetch rule set generation id: Permission denied (you must be root)' }),
    ],
    'iptables-nft may not change the rules: run with CAP_NET_ADMIN, for the legacy variant with CAP_NET_RAW too',
  ],
])('with %s it is unusable, in words for the operator', async (_, commands, reason) => {
  expect(await probed(...commands)).toEqual({ status: 'unusable', reasons: [reason] });
});

test('a kernel that lacks something is unusable, and what it lacks is named', async () => {
  const stderr = 'Warning: Extension statistic revision 0 not supported, missing kernel module?\nline 3 failed\n';
  const refused = { exitCode: 4, stderr };
  const result = await probed(
    version('1.8.9'),
    scratch(refused),
    ...ruleFeatures('IPv4').map(({ modules }) => scratch(modules === 'xt_statistic' ? refused : {})),
  );
  expect(result).toEqual({
    status: 'unusable',
    reasons: [
      `missing: choice by chance (xt_statistic); this is Linux ${release()} with iptables-nft 1.8.9`,
      'iptables-nft refuses the rules: Warning: Extension statistic revision 0 not supported, missing kernel module? | line 3 failed',
    ],
  });
});

test.each<[string, ScriptedCommand['answer']]>([
  ['unshare is missing', missing],
  ['namespaces are forbidden', { exitCode: 1, stderr: 'unshare: unshare failed: Operation not permitted' }],
  ['no namespace is made in time', new CommandError('timedOut', 'it took too long', { file: 'x', args: [] })],
])('iptables only reads the rules when %s', async (_, answer) => {
  const [file = '', ...args] = restore;
  expect(await probed(version('1.8.9'), scratch(answer), { file, args: [...args, '--test'] })).toMatchObject({
    status: 'usable',
  });
});

test.each<[string, ScriptedCommand, readonly string[]]>([
  [
    'crashes at --version',
    { file: 'iptables-nft', args: ['--version'], answer: { exitCode: 139 } },
    [
      'cannot ask iptables-nft for its version: iptables-nft was ended by SIGSEGV (exit status 139) and said nothing on stderr; ' +
        'install another build of the package iptables',
    ],
  ],
  [
    'fails at --version',
    { file: 'iptables-nft', args: ['--version'], answer: { exitCode: 127, stderr: 'libxtables.so.12: cannot open' } },
    [
      'cannot ask iptables-nft for its version: iptables-nft exited with 127 and said: libxtables.so.12: cannot open; ' +
        'install another build of the package iptables',
    ],
  ],
])('an iptables that %s is not said to be missing', async (_, asked, reasons) => {
  expect(await probed(asked)).toEqual({ status: 'unusable', reasons });
});

test('a crash at the rules is no refusal of the kernel', async () => {
  expect(await probed(version('1.8.9'), scratch({ exitCode: 139 }))).toEqual({
    status: 'unusable',
    reasons: ['iptables-nft-restore was ended by SIGSEGV (exit status 139) when it tried the rules'],
  });
});

test('one family is enough, and the reason against the other is logged', async () => {
  const runner = new ScriptedRunner([
    version('1.8.9'),
    { file: 'ip6tables-nft', args: ['--version'], answer: missing },
    { file: 'ip6tables', args: ['--version'], answer: missing },
    scratch({}),
  ]);
  const reasons = ['ip6tables-nft is not installed; install the package iptables'];
  const warnings: unknown[] = [];
  const logger: Logger = { ...noopLogger, warn: (...warning) => warnings.push(warning) };
  expect(await probeHost({ runner, variant: 'nft', ipFamilies: ['IPv4', 'IPv6'], logger }, signal)).toMatchObject({
    status: 'usable',
    ipFamilies: ['IPv4'],
    reasons,
  });
  expect(warnings).toEqual([['a family of iptables cannot be used', { reasons }]]);
  runner.assertDone();
});
