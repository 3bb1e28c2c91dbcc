import { hostname } from 'node:os';
import { describe, expect, test } from 'vitest';
import { type Config, parseConfig, type RunConfig } from './config.ts';
import { flags, helpText } from './flags.ts';

function run(...args: readonly string[]): RunConfig {
  const config: Config = parseConfig(['--proxy-mode=nftables', ...args], {});
  if (config.kind !== 'run') throw new Error(`not a run: ${config.kind}`);
  return config;
}

describe('defaults', () => {
  test('are those of kube-proxy in nftables mode', () => {
    expect(run()).toMatchObject({
      kind: 'run',
      source: { kind: 'inCluster', env: {} },
      nodeName: hostname().toLowerCase(),
      detectLocal: { kind: 'clusterCIDR', cidrs: {} },
      masqueradeAll: false,
      nodePortAddresses: { kind: 'primary' },
      healthz: { address: '0.0.0.0', port: 10256 },
      minSyncPeriod: undefined,
      syncPeriod: 30_000,
      terminatingFallback: 'on',
      nftTransport: 'netlink',
      logLevel: 'info',
    });
  });
});

describe('flags', () => {
  test.each<readonly [string, readonly string[], Partial<RunConfig>]>([
    ['a value after =', ['--hostname-override=n1'], { nodeName: run('--hostname-override=n1').nodeName }],
    ['a kubeconfig', ['--kubeconfig', '/x'], { source: { kind: 'kubeconfig', file: '/x' } }],
    ['manifests', ['--switchyard-manifests', '/x'], { source: { kind: 'manifests', folder: '/x' } }],
    ['a bare switch', ['--masquerade-all'], { masqueradeAll: true }],
    ['a switch that is true', ['--masquerade-all=true'], { masqueradeAll: true }],
    ['a switch that is false', ['--masquerade-all=false'], { masqueradeAll: false }],
    ['the last of several', ['--masquerade-all', '--masquerade-all=0'], { masqueradeAll: false }],
    ['a mode that exists', ['--proxy-mode', 'nftables'], {}],
    ['the nft program instead of netlink', ['--switchyard-nft-transport=cli'], { nftTransport: 'cli' }],
    ['the fallback', ['--switchyard-terminating-fallback=off'], { terminatingFallback: 'off' }],
    [
      'periods',
      ['--iptables-min-sync-period=10ms', '--iptables-sync-period=1m'],
      { minSyncPeriod: ms(10), syncPeriod: ms(60_000) },
    ],
    ['a minimum of zero', ['--iptables-min-sync-period', '0s'], { minSyncPeriod: ms(0) }],
    ['-v for details', ['-v', '4'], { logLevel: 'debug' }],
    ['-v=', ['-v=6'], { logLevel: 'trace' }],
    ['--v=', ['--v=2'], { logLevel: 'info' }],
  ])('%s', (_, args, expected) => {
    expect(run(...args)).toMatchObject(expected);
  });

  test.each([
    ['  Node-1 ', 'node-1'],
    ['NODE', 'node'],
    ['', hostname().toLowerCase()],
  ])('the Node name %j is taken as %j', (text, expected) => {
    expect(run('--hostname-override', text).nodeName).toBe(expected);
  });

  test.each([
    ['10.244.0.0/16', { IPv4: '10.244.0.0/16' }],
    ['10.244.0.0/16,fd00:10:244::/56', { IPv4: '10.244.0.0/16', IPv6: 'fd00:10:244::/56' }],
    ['fd00:10:244::/56, 10.244.0.0/16', { IPv4: '10.244.0.0/16', IPv6: 'fd00:10:244::/56' }],
    ['10.244.0.0/16,10.245.0.0/16', { IPv4: '10.244.0.0/16' }],
    ['', {}],
  ])('--cluster-cidr %j', (text, expected) => {
    expect(run('--cluster-cidr', text).detectLocal).toEqual({ kind: 'clusterCIDR', cidrs: expected });
  });

  test.each([
    ['primary', { kind: 'primary' }],
    ['192.0.2.0/24,fd00::/8', { kind: 'cidrs', cidrs: ['192.0.2.0/24', 'fd00::/8'] }],
    ['0.0.0.0/0', { kind: 'cidrs', cidrs: ['0.0.0.0/0'] }],
    ['', { kind: 'primary' }],
  ])('--nodeport-addresses %j', (text, expected) => {
    expect(run('--nodeport-addresses', text).nodePortAddresses).toEqual(expected);
  });

  test.each([
    ['127.0.0.1', { address: '127.0.0.1', port: 10256 }],
    ['127.0.0.1:80', { address: '127.0.0.1', port: 80 }],
    ['::1', { address: '::1', port: 10256 }],
    ['[::]:10257', { address: '::', port: 10257 }],
    ['', undefined],
  ])('--healthz-bind-address %j', (text, expected) => {
    expect(run('--healthz-bind-address', text).healthz).toEqual(expected);
  });

  test.each([
    [['--help'], 'help'],
    [['-h'], 'help'],
    [['--version'], 'version'],
    [['--switchyard-dump'], 'dump'],
    [['--cleanup'], 'cleanup'],
    [['--cleanup=false', '--proxy-mode=nftables'], 'run'],
    [['--kubeconfig=/x', '--switchyard-dump'], 'dump'],
  ])('%j is a %s', (args, kind) => {
    expect(parseConfig(args, {}).kind).toBe(kind);
  });
});

describe('what is refused, in one line', () => {
  test.each([
    [['--no-such-flag'], 'unknown flag --no-such-flag; see --help'],
    [['--no-such-flag=1'], 'unknown flag --no-such-flag; see --help'],
    [['-x'], 'unknown flag -x; see --help'],
    [['status'], 'unexpected argument "status"; see --help'],
    [['--', 'status'], 'unexpected argument "status"; see --help'],
    [['--masquerade-all', 'false'], 'unexpected argument "false"; see --help'],
    [['--masquerade-all=maybe'], '--masquerade-all is true or false, not "maybe"; see --help'],
    [['--kubeconfig'], '--kubeconfig needs a value: FILE; see --help'],
    [
      ['--proxy-mode=iptables'],
      '--proxy-mode "iptables": this agent has only \'nftables\'; give --proxy-mode=nftables',
    ],
    [
      ['--proxy-mode='],
      `--proxy-mode "": unset means 'iptables', as in kube-proxy, and this agent has only 'nftables'; give --proxy-mode=nftables`,
    ],
    [['--cluster-cidr=10.0.0.0'], '--cluster-cidr "10.0.0.0": "10.0.0.0" is not a CIDR such as 10.0.0.0/8'],
    [['--cluster-cidr=10.0.0.0/8,x'], '--cluster-cidr "10.0.0.0/8,x": "x" is not a CIDR such as 10.0.0.0/8'],
    [['--cluster-cidr=10.0.0.0/33'], '--cluster-cidr "10.0.0.0/33": "10.0.0.0/33" is not a CIDR such as 10.0.0.0/8'],
    [
      ['--nodeport-addresses=primary,10.0.0.0/8'],
      '--nodeport-addresses "primary,10.0.0.0/8": \'primary\' cannot be mixed with CIDRs',
    ],
    [
      ['--healthz-bind-address=localhost'],
      '--healthz-bind-address "localhost": it is an IP address, with or without a port, such as 0.0.0.0:10256',
    ],
    [
      ['--healthz-bind-address=0.0.0.0:70000'],
      '--healthz-bind-address "0.0.0.0:70000": it is an IP address, with or without a port, such as 0.0.0.0:10256',
    ],
    [['--iptables-sync-period=soon'], '--iptables-sync-period "soon": it is a duration such as 30s or 1m30s'],
    [['--switchyard-dump', '--cleanup'], '--switchyard-dump and --cleanup exclude each other; give one'],
    [['--switchyard-nft-transport=libnftables'], `--switchyard-nft-transport "libnftables": it is 'netlink' or 'cli'`],
    [['--iptables-sync-period=0'], '--iptables-sync-period "0": it must be more than 0'],
    [['--iptables-min-sync-period=1m'], '--iptables-min-sync-period "1m": it is longer than --iptables-sync-period'],
    [['--switchyard-terminating-fallback=maybe'], '--switchyard-terminating-fallback "maybe": it is on or off'],
    [['-v=loud'], '--v "loud": it is a number such as 2'],
    [
      ['--kubeconfig=/x', '--switchyard-manifests=/y'],
      '--kubeconfig and --switchyard-manifests exclude each other; give one',
    ],
    [['--hostname-override= '], '--hostname-override is empty; give the name of our Node'],
  ])('%j', (args, message) => {
    expect(errorOf(() => parseConfig(['--proxy-mode=nftables', ...args], {}))).toMatchObject({
      name: 'ConfigError',
      message,
    });
  });
});

describe('helpText', () => {
  test.each(flags.map(({ name }) => name))('names --%s', (name) => {
    expect(helpText()).toContain(`  --${name}`);
  });
});

function errorOf(action: () => unknown): unknown {
  try {
    return action();
  } catch (error) {
    return error;
  }
}

function ms(value: number): RunConfig['syncPeriod'] {
  return value as RunConfig['syncPeriod'];
}
