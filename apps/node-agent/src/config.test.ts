import { hostname } from 'node:os';
import { describe, expect, test } from 'vitest';
import { type Config, parseConfig, type RunConfig } from './config.ts';
import { helpText } from './config/flags/parse-flags.ts';
import { flags } from './config/flags/table.ts';

function run(...args: readonly string[]): RunConfig {
  const config: Config = parseConfig(['--proxy-mode=nftables', ...args], {});
  if (config.kind !== 'run') throw new Error(`not a run: ${config.kind}`);
  return config;
}

describe('defaults', () => {
  test.each([[['--proxy-mode=iptables']], [['--proxy-mode=']], [[]]])(
    'of kube-proxy in iptables mode with %j',
    (args) => {
      expect(parseConfig(args, {})).toMatchObject({
        kind: 'run',
        mode: 'iptables',
        iptables: { variant: 'auto', masqueradeBit: 14, localhostNodePorts: true },
        masqueradeAll: false,
        nodePortAddresses: { primary: false, cidrs: [], loopback: [] },
        minSyncPeriod: 1000,
        syncPeriod: 30_000,
        tcpBeLiberal: false,
      });
    },
  );

  test('a missing mode is logged, as kube-proxy does', () => {
    const told = expect.objectContaining({ level: 'warn', message: 'Using iptables proxy' }) as unknown;
    expect(parseConfig([], {})).toMatchObject({ notes: [told] });
    expect(parseConfig(['--proxy-mode=iptables'], {})).toMatchObject({ notes: [] });
  });

  test('are those of kube-proxy in nftables mode', () => {
    expect(run()).toMatchObject({
      kind: 'run',
      source: { kind: 'inCluster', env: {} },
      nodeName: hostname().toLowerCase(),
      detectLocal: { kind: 'clusterCIDR', cidrs: {} },
      masqueradeAll: false,
      nodePortAddresses: { primary: true, cidrs: [], loopback: [] },
      healthz: { address: '0.0.0.0', port: 10256 },
      minSyncPeriod: undefined,
      syncPeriod: 30_000,
      terminatingFallback: 'on',
      logLevel: 'info',
    });
  });
});

const iptables = { variant: 'auto', masqueradeBit: 14, localhostNodePorts: false } as const;

describe('NodePorts on 127.0.0.1, in the iptables mode', () => {
  test.each([
    ['with every address', [], true],
    ['not when they are switched off', ['--iptables-localhost-nodeports=false'], false],
    ['with a list that has it', ['--nodeport-addresses=10.0.0.0/8,127.0.0.0/8'], true],
    ['with a part of it', ['--nodeport-addresses=127.0.0.2/32'], true],
    ['with everything of IPv4', ['--nodeport-addresses=0.0.0.0/0'], true],
    ['with a list of IPv6 only, which leaves IPv4 open', ['--nodeport-addresses=fd00::/8'], true],
    ['not with other ranges', ['--nodeport-addresses=10.0.0.0/8'], false],
    ['not with primary', ['--nodeport-addresses=primary'], false],
  ])('%s', (_, args, expected) => {
    expect(parseConfig(args, {})).toMatchObject({ iptables: { localhostNodePorts: expected } });
  });
});

describe('flags', () => {
  test.each<readonly [string, readonly string[], Partial<RunConfig>]>([
    ['a value after =', ['--hostname-override=n1'], { nodeName: run('--hostname-override=n1').nodeName }],
    ['a kubeconfig', ['--kubeconfig', '/x'], { source: { kind: 'kubeconfig', file: '/x', server: undefined } }],
    ['manifests', ['--switchyard-manifests', '/x'], { source: { kind: 'manifests', folder: '/x' } }],
    ['a bare switch', ['--masquerade-all'], { masqueradeAll: true }],
    ['a switch that is true', ['--masquerade-all=true'], { masqueradeAll: true }],
    ['a switch that is false', ['--masquerade-all=false'], { masqueradeAll: false }],
    ['the last of several', ['--masquerade-all', '--masquerade-all=0'], { masqueradeAll: false }],
    ['a mode that exists', ['--proxy-mode', 'nftables'], {}],
    [
      'the transport of earlier releases, without effect',
      ['--switchyard-nft-transport=cli'],
      {
        notes: [
          {
            level: 'info',
            message: 'setting has no effect',
            fields: {
              setting: 'nftTransport',
              value: 'cli',
              why: 'everything goes to the kernel over netlink; no program nft is needed',
            },
          },
        ],
      },
    ],
    [
      'a variant of iptables',
      ['--switchyard-iptables-variant=legacy'],
      { iptables: { ...iptables, variant: 'legacy' } },
    ],
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
    ['', {}],
  ])('--cluster-cidr %j', (text, expected) => {
    expect(run('--cluster-cidr', text).detectLocal).toEqual({ kind: 'clusterCIDR', cidrs: expected });
  });

  test.each([
    ['primary', { primary: true, cidrs: [], loopback: [] }],
    ['192.0.2.0/24,fd00::/8', { primary: false, cidrs: ['192.0.2.0/24', 'fd00::/8'], loopback: [] }],
    ['0.0.0.0/0', { primary: false, cidrs: ['0.0.0.0/0'], loopback: [] }],
    ['', { primary: true, cidrs: [], loopback: [] }],
    ['localhost', { primary: false, cidrs: ['127.0.0.0/8', '::1/128'], loopback: ['IPv4', 'IPv6'] }],
    ['primary,localhost', { primary: true, cidrs: ['127.0.0.0/8', '::1/128'], loopback: ['IPv4', 'IPv6'] }],
    ['all', { primary: false, cidrs: ['0.0.0.0/0', '::/0'], loopback: [] }],
    ['0.0.0.0/0,127.0.0.1/32', { primary: false, cidrs: ['0.0.0.0/0', '127.0.0.1/32'], loopback: ['IPv4'] }],
    ['192.0.2.0/24,primary,::1/128', { primary: true, cidrs: ['192.0.2.0/24', '::1/128'], loopback: ['IPv6'] }],
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

describe('what is refused', () => {
  test.each([
    [['--no-such-flag'], 'unknown flag --no-such-flag; see --help'],
    [['--no-such-flag=1'], 'unknown flag --no-such-flag; see --help'],
    [['--no-such-flag', '1', '-x'], 'unknown flag --no-such-flag\nunknown flag -x; see --help'],
    [['--logtostderr'], '--logtostderr was removed in Kubernetes 1.26: leave it out; see --help'],
    [['status'], 'unexpected argument "status"; see --help'],
    [['--', 'status'], 'unexpected argument "status"; see --help'],
    [['--masquerade-all', 'false'], 'unexpected argument "false"; see --help'],
    [['--masquerade-all=maybe'], '--masquerade-all "maybe": must be true or false; see --help'],
    [['--kubeconfig'], '--kubeconfig needs a value: FILE; see --help'],
    [
      ['--iptables-sync-period=soon'],
      '--iptables-sync-period "soon": must be a duration, such as 30s or 1m30s; see --help',
    ],
    [['-v=loud'], '--v "loud": must be a whole number; see --help'],
    [['--conntrack-min=4294967296'], '--conntrack-min "4294967296": must fit in 32 bits; see --help'],
    [['--feature-gates=X'], '--feature-gates "X": "X" must be NAME=true or NAME=false; see --help'],
    [['--version=2'], '--version "2": must be true or raw; see --help'],
  ])('flags %j', (args, message) => {
    expect(errorOf(() => parseConfig(['--proxy-mode=nftables', ...args], {}))).toMatchObject({
      name: 'ConfigError',
      message,
    });
  });

  test.each([
    [
      '--proxy-mode=ipvs',
      'mode',
      '"ipvs"',
      'this agent has no ipvs mode, which is deprecated in Kubernetes too (KEP-5495: off by default in 1.40, gone in 1.43); set mode: nftables, iptables or ebpf',
    ],
    ['--proxy-mode=kernelspace', 'mode', '"kernelspace"', 'kernelspace is for Windows'],
    ['--proxy-mode=userspace', 'mode', '"userspace"', 'kube-proxy has iptables, ipvs and nftables'],
    ['--cluster-cidr=10.0.0.0', 'clusterCIDR', '"10.0.0.0"', '"10.0.0.0" is not a CIDR'],
    ['--cluster-cidr=10.0.0.0/8,x', 'clusterCIDR', '"10.0.0.0/8,x"', '"x" is not a CIDR'],
    ['--cluster-cidr=10.0.0.0/33', 'clusterCIDR', '"10.0.0.0/33"', '"10.0.0.0/33" is not a CIDR'],
    [
      '--cluster-cidr=10.0.0.0/9,10.128.0.0/9',
      'clusterCIDR',
      '"10.0.0.0/9,10.128.0.0/9"',
      'must be one CIDR, or one of each',
    ],
    ['--nodeport-addresses=primary,local', 'nodePortAddresses', '["primary","local"]', '[1] must be a CIDR'],
    ['--nodeport-addresses=10.0.0.1', 'nodePortAddresses', '["10.0.0.1"]', '[0] must be a CIDR'],
    ['--healthz-bind-address=localhost', 'healthzBindAddress', '"localhost"', 'must be IP:port'],
    ['--healthz-bind-address=0.0.0.0:70000', 'healthzBindAddress', '"0.0.0.0:70000"', 'must be IP:port'],
    ['--metrics-bind-address=x', 'metricsBindAddress', '"x"', 'must be IP:port'],
    ['--bind-address=x', 'bindAddress', '"x"', 'must be an IP address'],
    ['--iptables-sync-period=0', 'nftables.syncPeriod', '"0s"', 'must be greater than 0'],
    ['--iptables-min-sync-period=-1s', 'nftables.minSyncPeriod', '"-1s"', 'must be greater than or equal to 0'],
    ['--config-sync-period=0s', 'configSyncPeriod', '"0s"', 'must be greater than 0'],
    ['--iptables-masquerade-bit=32', 'iptables.masqueradeBit', '32', 'must be within the range [0, 31]'],
    ['--oom-score-adj=-1001', 'oomScoreAdj', '-1001', 'must be within the range [-1000, 1000]'],
    ['--conntrack-min=-1', 'conntrack.min', '-1', 'must be greater than or equal to 0'],
    ['--conntrack-max-per-core=-1', 'conntrack.maxPerCore', '-1', 'must be greater than or equal to 0'],
    ['--conntrack-udp-timeout=-1s', 'conntrack.udpTimeout', '"-1s"', 'must be greater than or equal to 0'],
    ['--kube-api-burst=-1', 'clientConnection.burst', '-1', 'must be greater than or equal to 0'],
    ['--detect-local-mode=Guess', 'detectLocalMode', '"Guess"', 'must be one of ClusterCIDR, NodeCIDR'],
    ['--hostname-override= ', 'hostnameOverride', '" "', 'must not be blank'],
    ['--show-hidden-metrics-for-version=1.38', 'showHiddenMetricsForVersion', '"1.38"', 'must be a minor version'],
    ['--logging-format=xml', 'logging.format', '"xml"', 'must be one of text, json'],
    ['--vmodule=a=1,=2', undefined, '', '"=2" must be PATTERN=N'],
  ])('%s', (arg, path, value, why) => {
    const { message } = errorOf(() => parseConfig(['--proxy-mode=nftables', arg], {})) as Error;
    const [flag = ''] = arg.split('=');
    const begin = path === undefined ? '' : `KubeProxyConfiguration.${path} (${flag}): Invalid value: ${value}: `;
    expect(message.startsWith(begin)).toBe(true);
    expect(message.slice(begin.length)).toContain(why);
    expect(message).not.toContain('\n');
  });

  test.each([
    [
      ['--iptables-min-sync-period=1m'],
      'must be greater than or equal to KubeProxyConfiguration.iptables.minSyncPeriod',
    ],
    [
      ['--iptables-sync-period=0'],
      'KubeProxyConfiguration.iptables.syncPeriod (--iptables-sync-period): Invalid value',
    ],
    [
      ['--proxy-mode=nftables', '--iptables-min-sync-period=1m'],
      'must be greater than or equal to KubeProxyConfiguration.nftables.minSyncPeriod',
    ],
    [
      ['--proxy-mode=nftables', '--detect-local-mode=BridgeInterface'],
      'KubeProxyConfiguration.detectLocal.bridgeInterface: Invalid value: "": must not be empty: detectLocalMode is BridgeInterface',
    ],
    [
      ['--proxy-mode=nftables', '--detect-local-mode=InterfaceNamePrefix', '--pod-interface-name-prefix=a b'],
      'cannot be the name of an interface: no interface can have " " in its name',
    ],
    [
      ['--proxy-mode=nftables', '--detect-local-mode=BridgeInterface', '--pod-bridge-interface=a"; drop'],
      'cannot be the name of an interface: no interface can have "\\"" in its name',
    ],
    [
      ['--proxy-mode=nftables', '--switchyard-nft-transport=libnftables'],
      'SwitchyardConfiguration.nftTransport (--switchyard-nft-transport): Invalid value: "libnftables": must be one of netlink, cli',
    ],
    [
      ['--proxy-mode=nftables', '--switchyard-iptables-variant=old'],
      'SwitchyardConfiguration.iptablesVariant (--switchyard-iptables-variant): Invalid value: "old": must be one of auto, nft, legacy',
    ],
    [['--proxy-mode=nftables', '--switchyard-terminating-fallback=maybe'], '"maybe": must be one of on, off'],
    [['--proxy-mode=nftables', '--switchyard-service-metrics-limit=0'], 'must be greater than 0'],
    [
      ['--proxy-mode=nftables', '--kubeconfig=/x', '--switchyard-manifests=/y'],
      'SwitchyardConfiguration.manifests (--switchyard-manifests): Invalid value: "/y": excludes a kubeconfig',
    ],
    [['--proxy-mode=nftables', '--master=ftp://x'], '--master "ftp://x": must be a URL'],
    [['--switchyard-dump', '--cleanup'], '--switchyard-dump and --cleanup exclude each other; give one'],
    [['--switchyard-cleanup-kube-proxy'], '--switchyard-cleanup-kube-proxy needs --cleanup; give both'],
  ])('%j', (args, message) => {
    expect((errorOf(() => parseConfig(args, {})) as Error).message).toContain(message);
  });

  test('everything at once', () => {
    const { message } = errorOf(() =>
      parseConfig(['--proxy-mode=ipvs', '--oom-score-adj=2000', '--conntrack-min=-1'], {}),
    ) as Error;
    expect(message.split('\n').map((line) => line.split(' ')[0])).toEqual([
      'KubeProxyConfiguration.oomScoreAdj',
      'KubeProxyConfiguration.conntrack.min',
      'KubeProxyConfiguration.mode',
    ]);
  });
});

describe('helpText', () => {
  test.each(flags.map(({ name }) => name))('names --%s', (name) => {
    expect(helpText()).toMatch(new RegExp(`^  (?:-\\w, )?--${name}\\b`, 'm'));
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
