import { CommandError } from '@switchyard/host';
import { ScriptedRunner, type ScriptedCommand } from '@switchyard/host/testing';
import { describe, expect, test } from 'vitest';
import { probeHost } from './probe.ts';
import { ruleFeatures } from './rule-features.ts';
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
  ])('with %s it is unusable, in words for the operator', async (_, script, reason) => {
    const runner = new ScriptedRunner(script);
    expect(await probeHost({ runner: runner, transport: 'cli' }, signal)).toEqual({
      status: 'unusable',
      reasons: [expect.stringMatching(reason)],
    });
    runner.assertDone();
  });

  test('a kernel that lacks something is unusable, and what it lacks is named with the versions there are', async () => {
    const refused = { exitCode: 1, stderr: 'Error: Could not process rule: Not supported' };
    const runner = new ScriptedRunner([
      version('nftables v1.0.6 (x)'),
      scratch(refused),
      { file: 'uname', args: ['-r'], answer: { stdout: '5.4.0-26\n' } },
      version('nftables v1.0.6 (x)'),
      ...ruleFeatures.map(({ name, rules }) => ({
        file: 'unshare',
        args: ['--net', 'nft', '-f', '-'],
        stdin: `table inet switchyard-probe {\n${rules}\n}\n`,
        answer: /reject|counters/.test(name) ? refused : {},
      })),
    ]);
    expect(await probeHost({ runner, transport: 'netlink' }, signal)).toEqual({
      status: 'unusable',
      reasons: [
        'missing: reject in prerouting chains; needs Linux 5.9, this is Linux 5.4.0-26 with nft 1.0.6',
        'missing: counters in elements of maps; needs Linux 5.7, nft 1.0.1, this is Linux 5.4.0-26 with nft 1.0.6',
        'nft or the kernel refuses the rule set: Error: Could not process rule: Not supported',
      ],
    });
    runner.assertDone();
  });

  test.each<[string, ScriptedCommand['answer']]>([
    ['unshare is missing', missing],
    ['namespaces are forbidden', { exitCode: 1, stderr: 'unshare: unshare failed: Operation not permitted' }],
    ['no namespace is made in time', new CommandError('timedOut', 'it took too long', { file: 'x', args: [] })],
  ])('the rules are only checked when %s', async (_, answer) => {
    const runner = new ScriptedRunner([version('nftables v1.1.3 (x)'), scratch(answer), check({})]);
    expect(await probeHost({ runner: runner, transport: 'cli' }, signal)).toMatchObject({ status: 'usable' });
    runner.assertDone();
  });
});
