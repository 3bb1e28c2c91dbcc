import { CommandError } from '@switchyard/host';
import { ScriptedRunner, type ScriptedCommand } from '@switchyard/host/testing';
import { describe, expect, test } from 'vitest';
import { probeHost } from './probe.ts';
import { FakeNft } from './testing/fake-nft.ts';

const { signal } = new AbortController();
const version = (text: string): ScriptedCommand => ({ file: 'nft', args: ['--version'], answer: { stdout: text } });
const scratch = (answer: ScriptedCommand['answer']): ScriptedCommand => ({
  file: 'unshare',
  args: ['--net', 'nft', '-f', '-'],
  stdin: /create table inet switchyard-probe/,
  answer: answer ?? {},
});
const check = (answer: ScriptedCommand['answer']): ScriptedCommand => ({
  file: 'nft',
  args: ['--check', '-f', '-'],
  answer: answer ?? {},
});
const missing = new CommandError('notFound', 'cannot run', { file: 'x', args: [] });

describe('probeHost', () => {
  test('a machine that takes the rules is usable, and nothing is left behind', async () => {
    const nft = new FakeNft();
    expect(await probeHost({ runner: nft, transport: 'cli' }, signal)).toMatchObject({
      status: 'usable',
      capabilities: { sessionAffinity: false },
    });
    expect(nft.ruleset.tables.size).toBe(0);
  });

  test.each<[string, readonly ScriptedCommand[], RegExp]>([
    ['no nft', [{ file: 'nft', args: ['--version'], answer: missing }], /install the package nftables/],
    ['nft 1.0.0', [version('nftables v1.0.0 (x)')], /1\.0\.0 is too old; 1\.0\.1/],
    ['nft 0.9.8', [version('nftables v0.9.8 (x)')], /0\.9\.8 is too old/],
    ['no version', [version('busybox')], /cannot tell the version of nft from "busybox"/],
    [
      'no permission',
      [
        version('nftables v1.0.6 (x)'),
        scratch(missing),
        check({ exitCode: 1, stderr: 'Error: Operation not permitted' }),
      ],
      /run as root or with CAP_NET_ADMIN/,
    ],
    [
      'an old kernel',
      [
        version('nftables v1.0.6 (x)'),
        scratch({ exitCode: 1, stderr: 'Error: Could not process rule: Not supported' }),
      ],
      /refuses the rule set: .*Not supported/,
    ],
  ])('with %s it is unusable, in words for the operator', async (_, script, reason) => {
    const runner = new ScriptedRunner(script);
    expect(await probeHost({ runner: runner, transport: 'cli' }, signal)).toEqual({
      status: 'unusable',
      reasons: [expect.stringMatching(reason)],
    });
    runner.assertDone();
  });

  test.each<[string, ScriptedCommand['answer']]>([
    ['unshare is missing', missing],
    ['namespaces are forbidden', { exitCode: 1, stderr: 'unshare: unshare failed: Operation not permitted' }],
  ])('the rules are only checked when %s', async (_, answer) => {
    const runner = new ScriptedRunner([version('nftables v1.1.3 (x)'), scratch(answer), check({})]);
    expect(await probeHost({ runner: runner, transport: 'cli' }, signal)).toMatchObject({ status: 'usable' });
    runner.assertDone();
  });
});
