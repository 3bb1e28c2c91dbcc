import { ConfigError } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { parseConfig } from './config.ts';
import type { RunConfig } from './run-config.ts';
import { version } from '../version.ts';

const kubeconfig = ['--runtime=process', '--kubeconfig', '/k'];
const base = [...kubeconfig, '--address', '172.18.0.50'];
/** The configuration of a run. */
const run = (flags: readonly string[], env = {}): RunConfig => {
  const config = parseConfig(flags, env);
  if (config.kind !== 'run') throw new Error(`not a run: ${config.kind}`);
  return config;
};
const profile = (flags: readonly string[]): unknown => run(flags).defaults.healthProfileOf(undefined, {});

test('the lab’s flags', () => {
  const flags = [
    '--runtime=process',
    '--kubeconfig=/k',
    '--address=172.18.0.50,fd00:172:18:0:0::50',
    '--health-check-interval=500ms',
    '--health-check-fall=2',
    '--health-check-rise=3',
    '--event-log=/tmp/e.jsonl',
  ];
  expect(run(flags)).toMatchObject({
    kind: 'run',
    clusters: { kind: 'kubeconfig', file: '/k', name: 'lab' },
    runtime: {
      kind: 'process',
      source: { kind: 'shared', addresses: ['172.18.0.50', 'fd00:172:18::50'] },
      isKeptOnExit: false,
      haproxy: 'haproxy',
    },
    eventLog: '/tmp/e.jsonl',
    logLevel: 'info',
  });
  expect(profile(flags)).toMatchObject({ interval: 500, fall: 2, rise: 3, timeout: undefined, connectTimeout: 5000 });
});

test('no flags at all: all kind clusters on Docker, one leader', () => {
  expect(run([])).toMatchObject({
    runtime: {
      kind: 'docker',
      engine: 'docker',
      network: 'kind',
      image: `switchyard/load-balancer:${version}`,
      pool: [],
      publishOn: undefined,
    },
    clusters: { kind: 'discovery', names: [] },
    lease: {
      namespace: 'kube-system',
      name: 'switchyard-lb',
      timings: { leaseDuration: 15_000, renewDeadline: 10_000, retryPeriod: 2000 },
    },
    defaults: { isFastDrain: false, isPublished: false },
  });
});

test('the docker runtime’s flags', () => {
  const flags = [
    'run',
    '--cluster=a',
    '--cluster=b',
    '--container-engine=/opt/podman',
    '--fast-drain',
    '--publish-ports',
  ];
  expect(run([...flags, '--pool=172.18.200.0/24', '--leader-elect=false'])).toMatchObject({
    runtime: { engine: '/opt/podman', pool: ['172.18.200.0/24'], publishOn: '127.0.0.1' },
    clusters: { kind: 'discovery', names: ['a', 'b'] },
    lease: undefined,
    defaults: { isFastDrain: true, isPublished: true },
  });
  expect(run(['--enable-lb-port-mapping'])).toMatchObject({ runtime: { publishOn: '127.0.0.1' } });
  expect(run(['--publish-ports=0.0.0.0'])).toMatchObject({ runtime: { publishOn: '0.0.0.0' } });
  expect(run(['--kubeconfig=/k', '--cluster=kind'])).toMatchObject({
    clusters: { kind: 'kubeconfig', file: '/k', name: 'kind' },
  });
});

test('kind’s own variable names the network; KUBECONFIG is for the process runtime only', () => {
  const env = { KIND_EXPERIMENTAL_DOCKER_NETWORK: 'other', KUBECONFIG: '/env' };
  expect(run([], env)).toMatchObject({ runtime: { network: 'other' }, clusters: { kind: 'discovery' } });
  expect(run(['--runtime=process', '--address=172.18.0.50'], env)).toMatchObject({ clusters: { file: '/env' } });
});

test('flags change their own profile, a Service may name another one', () => {
  const { healthProfileOf } = run(['--health-check-profile=aws-nlb', '--fall=7']).defaults;
  expect(healthProfileOf(undefined, {})).toMatchObject({ name: 'aws-nlb, changed', fall: 7, rise: 2 });
  expect(healthProfileOf(undefined, { rise: 3 })).toMatchObject({ fall: 7, rise: 3 });
  expect(healthProfileOf('switchyard', {})).toMatchObject({ name: 'switchyard', fall: 1 });
});

test('short names of the health-check flags mean the same', () => {
  expect(profile([...base, '--fall', '4', '--rise', '5', '--timeout', '1s'])).toMatchObject({
    fall: 4,
    rise: 5,
    timeout: 1000,
  });
});

test('each network namespace has a run directory of its own', () => {
  const runDirectory: unknown = expect.stringMatching(/^\/run\/switchyard-lb\/\d+$/);
  expect(run(base)).toMatchObject({ runtime: { runDirectory } });
});

test('a pool with its interface', () => {
  const flags = [...kubeconfig, '--pool', '172.18.0.200/29', '--interface', 'eth0'];
  expect(run(flags)).toMatchObject({
    runtime: { source: { kind: 'pool', cidrs: ['172.18.0.200/29'] }, interfaceName: 'eth0' },
  });
});

test.each([['--help'], ['run', '--help']])('help lists flags, subcommands and annotations: %s %s', (...flags) => {
  const config = parseConfig(flags.filter((one) => one !== undefined));
  if (config.kind !== 'help') throw new Error(config.kind);
  for (const part of ['--health-check-fall', 'switchyard-lb check SERVICE', 'lb.switchyard.dev/path']) {
    expect(config.text).toContain(part);
  }
});

test('the version', () => {
  expect(parseConfig(['--version'])).toEqual({ kind: 'help', text: `switchyard-lb ${version}\n` });
});

test.each([['check'], ['profiles']] as const)('%s gets the arguments after it', (kind) => {
  expect(parseConfig([kind, 'a', '--help'])).toEqual({ kind, args: ['a', '--help'] });
});

describe('one clear line for', () => {
  test.each<[what: string, flags: readonly string[], message: RegExp]>([
    ['an unknown flag', [...base, '--foo'], /unknown option '--foo'/],
    ['an argument', [...base, 'foo'], /^there is no command 'foo'; there is run, check and profiles; see --help$/],
    ['a wrong choice', ['--runtime=lxc'], /Allowed choices are docker, process; see --help$/],
    ['no API server', ['--runtime=process', '--address', '172.18.0.50'], /--kubeconfig FILE/],
    ['no addresses', kubeconfig, /either --address or --pool/],
    ['both kinds of addresses', [...base, '--pool', '10.0.0.0/24'], /either --address or --pool/],
    ['a bad address', [...kubeconfig, '--address', '172.18.0'], /--address: not an IP address: "172.18.0"/],
    ['two addresses of a family', [...base, '--address', '172.18.0.51'], /more than one IPv4 address/],
    ['a bad pool', [...kubeconfig, '--pool', '10.0.0.0/33'], /--pool: not a CIDR/],
    ['a pool without interface', [...kubeconfig, '--pool', '10.0.0.0/24'], /--pool needs --interface/],
    ['a bad duration', [...base, '--health-check-interval', '5'], /--health-check-interval: not a positive duration/],
    ['a bad count', [...base, '--fall', 'x'], /--fall: not a whole number/],
    ['an unknown profile', [...base, '--health-check-profile', 'x'], /no health-check profile is called 'x'/],
    ['a namespace that is not there', [...base, '--netns', 'swy-none'], /there is no namespace swy-none/],
    ['a path as a namespace', [...base, '--netns', '../x'], /not a namespace name/],
    ['a long run directory', [...base, '--run-directory', `/${'x'.repeat(80)}`], /longer than 70 characters/],
    ['an address for Docker', ['--address', '172.18.0.50'], /--address needs --runtime process/],
    ['published ports of a process', [...base, '--publish-ports'], /--publish-ports is for --runtime docker/],
    ['an unknown engine', ['--container-engine', 'lxc'], /there is docker, podman, nerdctl, not 'lxc'/],
    ['a wrong cluster name', ['--cluster', '../x'], /not a name of a cluster: '..\/x'/],
    ['a kubeconfig without a name', ['--kubeconfig', '/k'], /--kubeconfig needs one --cluster/],
    ['a lease that is too short', ['--leader-elect-lease-duration=5s'], /must be longer than -renew-deadline/],
    ['half a truth', ['--leader-elect=perhaps'], /must be true or false/],
    ['a log level', [...base, '--log-level', 'loud'], /Allowed choices are/],
  ])('%s', (_, flags, message) => {
    expect(() => parseConfig(flags, {})).toThrow(ConfigError);
    expect(() => parseConfig(flags, {})).toThrow(message);
    try {
      parseConfig(flags, {});
    } catch (error) {
      expect((error as Error).message.split('\n').filter((line) => line !== '').length).toBeLessThanOrEqual(2);
    }
  });
});
