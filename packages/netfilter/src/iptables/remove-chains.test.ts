import { describe, expect, test } from 'vitest';
import { CommandError } from '@switchyard/host';
import { type ScriptedCommand, ScriptedRunner } from '@switchyard/host/testing';
import { allOfKubeProxy, ifBirthmarked } from './kube-proxy-chains.ts';
import { type PlaceRemoval, removeChains } from './remove-chains.ts';

const { signal } = new AbortController();
const place = { ipFamily: 'IPv4', variant: 'nft' } as const;
const missing = new CommandError('notFound', 'cannot run it', { file: 'x', args: [] });
const version = (file: string, stdout: string): ScriptedCommand => ({ file, args: ['--version'], answer: { stdout } });
const installed = version('iptables-nft', 'iptables v1.8.9 (nf_tables)\n');
const absent: ScriptedCommand = { ...installed, answer: missing };
const table = '*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n-A PREROUTING -j KUBE-SERVICES\nCOMMIT\n';
const script = '*nat\n:KUBE-SERVICES - [0:0]\n-D PREROUTING -j KUBE-SERVICES\n-X KUBE-SERVICES\nCOMMIT\n';
const save = (stdout: string): ScriptedCommand => ({ file: 'iptables-nft-save', args: [], answer: { stdout } });
const restore = (answer: ScriptedCommand['answer'] = {}): ScriptedCommand => ({
  file: 'iptables-nft-restore',
  args: ['--noflush', '-w', '10'],
  stdin: script,
  answer,
});
const refused = { exitCode: 1, stderr: 'iptables-restore: line 3 failed\n' };

async function run(...commands: readonly ScriptedCommand[]): Promise<PlaceRemoval> {
  const runner = new ScriptedRunner(commands);
  const result = await removeChains(runner, place, allOfKubeProxy, signal);
  runner.assertDone();
  return result;
}

describe('chains are removed', () => {
  test('in one transaction per table', async () => {
    expect(await run(installed, save(table), restore())).toMatchObject({
      status: 'looked',
      tables: [{ table: 'nat', chains: ['KUBE-SERVICES'] }],
    });
  });

  test('of mangle last, where the birthmark is, in any order of tables', async () => {
    const mangle = '*mangle\n:SWITCHYARD - [0:0]\nCOMMIT\n';
    const last = { ...restore(), stdin: '*mangle\n:SWITCHYARD - [0:0]\n-X SWITCHYARD\nCOMMIT\n' };
    const runner = new ScriptedRunner([installed, save(mangle + table), restore(), last]);
    expect(await removeChains(runner, place, ifBirthmarked, signal)).toMatchObject({
      tables: [{ table: 'nat' }, { table: 'mangle' }],
    });
    runner.assertDone();
  });

  test("of this agent only where its birthmark is: else they are a kube-proxy's", async () => {
    const runner = new ScriptedRunner([installed, save(table)]);
    expect(await removeChains(runner, place, ifBirthmarked, signal)).toMatchObject({ status: 'looked', tables: [] });
    runner.assertDone();
  });

  test('with nothing written where there is nothing', async () => {
    expect(await run(installed, save(''))).toMatchObject({ status: 'looked', tables: [] });
  });

  test('after another look when another process changed the rules in between', async () => {
    expect(await run(installed, save(table), restore(refused), save(''))).toMatchObject({
      status: 'looked',
      tables: [],
    });
  });

  test('or it is said what was attempted, on what, and what came back', async () => {
    const once = [save(table), restore(refused)];
    const result = await run(installed, ...once, ...once, ...once);
    expect(result).toMatchObject({ status: 'failed', tables: [] });
    expect(result.status === 'failed' && result.error.message).toBe(
      'cannot remove chains (1) from table nat of iptables-nft; it is as before: ' +
        'iptables-nft-restore exited with 1 and said: iptables-restore: line 3 failed',
    );
  });

  test('or it is said which right is missing for the legacy variant', async () => {
    const stderr = 'iptables-save v1.8.9 (legacy): Cannot initialize: Permission denied (you must be root)\n';
    const runner = new ScriptedRunner([
      version('iptables-legacy', 'iptables v1.8.9 (legacy)\n'),
      { file: 'iptables-legacy-save', args: [], answer: { exitCode: 2, stderr } },
    ]);
    const result = await removeChains(runner, { ...place, variant: 'legacy' }, allOfKubeProxy, signal);
    expect(result.status === 'failed' && result.error.message).toMatch(
      /^cannot read the rules of iptables-legacy, which needs CAP_NET_RAW besides CAP_NET_ADMIN: iptables-legacy-save exited with 2/,
    );
  });

  test.each([
    [
      'the program is not installed',
      [absent, { file: 'iptables', args: ['--version'], answer: missing }],
      'iptables-nft is not installed',
    ],
    [
      'the only iptables is of the other variant',
      [absent, version('iptables', 'iptables v1.8.9 (legacy)\n')],
      'iptables-nft is not installed',
    ],
    [
      'the kernel has no such tables',
      [
        installed,
        { file: 'iptables-nft-save', args: [], answer: { exitCode: 3, stderr: "can't initialize iptables table" } },
      ],
      'the kernel has no iptables-nft tables',
    ],
  ])('nowhere, with the reason, when %s', async (_, commands, reason) => {
    expect(await run(...(commands as ScriptedCommand[]))).toEqual({ ...place, status: 'skipped', reason });
  });

  test('by plain iptables where it is of this variant', async () => {
    const plain = version('iptables', 'iptables v1.8.9 (nf_tables)\n');
    const commands = [absent, plain, { ...save(''), file: 'iptables-save' }];
    expect(await run(...commands)).toMatchObject({ status: 'looked' });
  });
});
