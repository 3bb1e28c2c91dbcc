import { describe, expect, test } from 'vitest';
import { readConfig, type RunConfig } from './config.ts';

function run(...args: readonly string[]): RunConfig {
  const config = readConfig(args);
  expect(config.kind).toBe('run');
  return config as RunConfig;
}

describe('readConfig', () => {
  test.each(['diff', 'report', 'publish', 'verify', 'pages'])('%s parses its own arguments', (command) => {
    expect(readConfig([command, 'a', '--b'])).toEqual({ kind: command, args: ['a', '--b'] });
  });

  test('standard output takes JSON alone; Sonobuoy has its folder', () => {
    expect(run('--json', '-').output.json).toBe('-');
    expect(() => run('--html', '-')).toThrow('only --json may be - (standard output)');
    expect(run().sonobuoyFolder).toBeUndefined();
    expect(run('--sonobuoy').sonobuoyFolder).toBe('/tmp/sonobuoy/results');
  });

  test('without anything: our nftables mode, in one lab, all cases, once', () => {
    expect(run()).toMatchObject({
      target: 'lab',
      proxy: { kind: 'own', backends: ['nftables'] },
      scenarioFiles: [],
      globs: [],
      tags: [],
      cell: undefined,
      labName: 'conf',
      seed: 1,
      rounds: 1,
      jobs: 1,
      isFailFast: false,
      isVerbose: false,
      output: { json: undefined, junit: undefined, html: undefined },
    });
  });

  test('every flag of a run, with and without the word', () => {
    const flags =
      '--backend nftables,ebpf-tc,nftables --ip-family ipv6 --scenario x/a.yaml --scenario b.yml --case a/* --case b --tag smoke --tag !slow --seed 7 --repeat 20 --jobs 4 --lab-name me --json a --junit b --html c --fail-fast -v';
    const config = run(...flags.split(' '));
    expect(config).toEqual(run('run', ...flags.split(' ')));
    expect(config).toMatchObject({
      proxy: { kind: 'own', backends: ['nftables', 'ebpf-tc'] },
      scenarioFiles: ['x/a.yaml', 'b.yml'],
      globs: ['a/*', 'b'],
      tags: ['smoke', '!slow'],
      cell: 'ipv6',
      labName: 'me',
      seed: 7,
      rounds: 20,
      jobs: 4,
      isFailFast: true,
      isVerbose: true,
      output: { json: 'a', junit: 'b', html: 'c' },
    });
  });

  test.each([
    {
      args: ['--backend', 'all'],
      proxy: { kind: 'own', backends: ['nftables', 'iptables-nft', 'iptables-legacy', 'ebpf-tc', 'ebpf-nftables'] },
    },
    { args: ['--proxy-cmd', 'kp {flags}'], proxy: { kind: 'foreign', command: 'kp {flags}', dataplane: 'iptables' } },
    {
      args: ['--proxy-cmd', 'kp', '--mode', 'nftables', '--proxy-name', 'k'],
      proxy: { kind: 'foreign', command: 'kp', name: 'k', dataplane: 'nftables' },
    },
    { args: ['--target', 'cluster'], proxy: { kind: 'cluster', name: undefined, dataplane: undefined } },
    { args: ['--target', 'cluster', '--mode', 'ebpf'], proxy: { kind: 'cluster', dataplane: 'ebpf' } },
  ])('$args is $proxy.kind', ({ args, proxy }) => {
    expect(run(...args).proxy).toMatchObject(proxy);
  });

  test.each([
    { args: ['--backend', 'nft'], text: '--backend is one of nftables, iptables-nft' },
    { args: ['--backend', 'nftables', '--proxy-cmd', 'kp'], text: 'both say which proxy' },
    { args: ['--proxy-name', 'k'], text: 'belong to --proxy-cmd' },
    { args: ['--target', 'cluster', '--backend', 'nftables'], text: 'tests the proxy that the cluster has' },
    { args: ['--target', 'moon'], text: '--target is one of lab, cluster, not moon' },
    { args: ['--kubeconfig', 'f'], text: 'belong to --target cluster' },
    { args: ['--allow-other-load-balancers'], text: 'belong to --target cluster' },
    { args: ['--disruptive'], text: 'belong to --target cluster' },
    { args: ['--load-balancer'], text: 'belong to --target cluster' },
    { args: ['--target', 'cluster', '--nodes', 'a'], text: '--nodes is two names' },
    { args: ['--repeat', '0'], text: '--repeat is a whole number from 1 on, not 0' },
    { args: ['--jobs', 'many'], text: '--jobs is a whole number' },
    { args: ['--lab-name', 'toolong1'], text: '--lab-name is 1 to 6' },
    { args: ['--ip-family', 'v4'], text: '--ip-family is one of' },
    { args: ['--cases', 'a'], text: "Unknown option '--cases'" },
    { args: ['scenario/a'], text: 'there is no command scenario/a' },
    { args: ['run', 'scenario/a'], text: "Unexpected argument 'scenario/a'" },
  ])('$args is refused: $text', ({ args, text }) => {
    expect(() => readConfig(args)).toThrow(text);
    expect(() => readConfig(args)).toThrow('--help');
  });

  test('diff and report read their arguments by themselves, list has its own', () => {
    expect(readConfig(['diff', 'a', '--json', 'b'])).toEqual({ kind: 'diff', args: ['a', '--json', 'b'] });
    expect(readConfig(['report', 'a'])).toEqual({ kind: 'report', args: ['a'] });
    expect(readConfig(['list', '--mode', 'ebpf', '--json', '--tag', 'udp'])).toMatchObject({
      kind: 'list',
      dataplane: 'ebpf',
      format: 'json',
      tags: ['udp'],
    });
    expect(readConfig(['--help'])).toEqual({ kind: 'help' });
    expect(readConfig(['list', '-h'])).toEqual({ kind: 'help' });
  });
});
