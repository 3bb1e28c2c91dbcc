import { hostname } from 'node:os';
import {
  type Cidr,
  cidrFamilyOf,
  ConfigError,
  type IpFamily,
  type Millis,
  millis,
  nodeName,
  type NodeName,
  parseGoDuration,
  seconds,
  tryParseCidr,
  tryParseIp,
  tryParsePort,
} from '@switchyard/core';
import type { LogLevel } from '@switchyard/host';
import type { DetectLocal, NftTransportKind, NodePortAddresses, RunConfig, SourceConfig } from './config/run-config.ts';
import { type FlagValues, parseFlags } from './flags.ts';

export type { NftTransportKind, NodePortAddresses, RunConfig, SourceConfig };

/** What this process is to do. */
export type Config =
  | RunConfig
  | { readonly kind: 'dump'; readonly nftTransport: NftTransportKind; readonly logLevel: LogLevel }
  | {
      readonly kind: 'cleanup';
      readonly ofKubeProxyToo: boolean;
      readonly nftTransport: NftTransportKind;
      readonly logLevel: LogLevel;
    }
  | { readonly kind: 'help' }
  | { readonly kind: 'version' };

/** What no flag sets yet: kube-proxy's defaults. */
const unset = {
  purpose: 'run',
  kubeApi: { master: '', contentType: '', qps: 5, burst: 10 },
  bindAddress: undefined,
  metricsServer: undefined,
  bindAddressHardFail: false,
  enableProfiling: false,
  configSyncPeriod: seconds(900),
  conntrack: {
    maxPerCore: 0,
    min: 0,
    tcpEstablishedTimeout: seconds(0),
    tcpCloseWaitTimeout: seconds(0),
    tcpBeLiberal: false,
    udpTimeout: seconds(0),
    udpStreamTimeout: seconds(0),
  },
  oomScoreAdj: undefined,
  featureGates: new Map<string, boolean>(),
  kubeProxyRules: 'remove',
  serviceMetrics: { kind: 'on', limit: 1000 },
} as const satisfies Partial<RunConfig>;

const defaultHealthz = '0.0.0.0:10256';
const defaultHealthzPort = 10256;

/** Reads flags and what they leave to the machine. Throws `ConfigError` with one line for whatever is wrong. */
export function parseConfig(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Config {
  const values = parseFlags(args);
  const isOn = (name: string): boolean => values.get(name) === 'true';
  if (isOn('help')) return { kind: 'help' };
  if (isOn('version')) return { kind: 'version' };
  const logLevel = parseLogLevel(values);
  const nftTransport = parseNftTransport(values);
  if (isOn('switchyard-dump') && isOn('cleanup')) {
    throw new ConfigError('config.command', '--switchyard-dump and --cleanup exclude each other; give one');
  }
  if (isOn('switchyard-dump')) return { kind: 'dump', nftTransport, logLevel };
  if (isOn('cleanup'))
    return { kind: 'cleanup', ofKubeProxyToo: isOn('switchyard-cleanup-kube-proxy'), nftTransport, logLevel };
  checkProxyMode(values);
  return {
    kind: 'run',
    source: parseSource(values, env),
    nodeName: parseNodeName(values),
    detectLocal: { kind: 'clusterCIDR', cidrs: parsePodCidrs(values) },
    ...unset,
    purpose: isOn('init-only') ? 'set-up' : 'run',
    conntrack: {
      ...unset.conntrack,
      maxPerCore: Number(values.get('conntrack-max-per-core') ?? 0),
      min: Number(values.get('conntrack-min') ?? 0),
      tcpEstablishedTimeout: parsePeriod(values, 'conntrack-tcp-timeout-established') ?? seconds(0),
    },
    oomScoreAdj: values.has('oom-score-adj') ? Number(values.get('oom-score-adj')) : undefined,
    kubeProxyRules: values.get('switchyard-kube-proxy-rules') === 'keep' ? 'keep' : 'remove',
    masqueradeAll: isOn('masquerade-all'),
    nodePortAddresses: parseNodePortAddresses(values),
    healthz: parseHealthz(values.get('healthz-bind-address') ?? defaultHealthz),
    ...parsePeriods(values),
    terminatingFallback: parseFallback(values),
    nftTransport,
    logLevel,
  };
}

function checkProxyMode(values: FlagValues): void {
  const mode = values.get('proxy-mode') ?? '';
  if (mode !== 'nftables') {
    const meant = mode === '' ? "unset means 'iptables', as in kube-proxy, and " : '';
    throw refuse('proxy-mode', mode, `${meant}this agent has only 'nftables'; give --proxy-mode=nftables`);
  }
}

function parseNftTransport(values: FlagValues): NftTransportKind {
  const text = values.get('switchyard-nft-transport') ?? 'netlink';
  if (text !== 'netlink' && text !== 'cli') throw refuse('switchyard-nft-transport', text, "it is 'netlink' or 'cli'");
  return text;
}

function parseLogLevel(values: FlagValues): LogLevel {
  const text = values.get('v') ?? '2';
  if (!/^\d{1,2}$/.test(text)) throw refuse('v', text, 'it is a number such as 2');
  const level = Number(text);
  return level < 4 ? 'info' : level < 6 ? 'debug' : 'trace';
}

function parseSource(values: FlagValues, env: Readonly<Record<string, string | undefined>>): SourceConfig {
  const file = values.get('kubeconfig') ?? '';
  const folder = values.get('switchyard-manifests') ?? '';
  if (file !== '' && folder !== '') {
    throw new ConfigError('config.source', '--kubeconfig and --switchyard-manifests exclude each other; give one');
  }
  if (file !== '') return { kind: 'kubeconfig', file };
  return folder === '' ? { kind: 'inCluster', env } : { kind: 'manifests', folder };
}

function parseNodeName(values: FlagValues): NodeName {
  const override = values.get('hostname-override') ?? '';
  const text = (override === '' ? hostname() : override).trim().toLowerCase();
  if (text === '') throw new ConfigError('config.nodeName', '--hostname-override is empty; give the name of our Node');
  return nodeName(text);
}

/** As kube-proxy, the first range of a family counts. */
function parsePodCidrs(values: FlagValues): Extract<DetectLocal, { readonly kind: 'clusterCIDR' }>['cidrs'] {
  const cidrs = parseCidrs('cluster-cidr', values.get('cluster-cidr') ?? '');
  const podCidrs: Partial<Record<IpFamily, Cidr>> = {};
  for (const cidr of cidrs) podCidrs[cidrFamilyOf(cidr)] ??= cidr;
  return podCidrs;
}

function parseNodePortAddresses(values: FlagValues): NodePortAddresses {
  const text = values.get('nodeport-addresses') ?? '';
  if (text.trim() === '') return { kind: 'primary' }; // as kube-proxy in nftables mode: an empty list is none
  const parts = text.split(',').map((part) => part.trim());
  if (!parts.includes('primary')) return { kind: 'cidrs', cidrs: parseCidrs('nodeport-addresses', text) };
  if (parts.length > 1) throw refuse('nodeport-addresses', text, "'primary' cannot be mixed with CIDRs");
  return { kind: 'primary' };
}

function parseCidrs(flag: string, text: string): readonly Cidr[] {
  if (text.trim() === '') return [];
  return text.split(',').map((part) => {
    const cidr = tryParseCidr(part);
    if (cidr === undefined) throw refuse(flag, text, `${JSON.stringify(part)} is not a CIDR such as 10.0.0.0/8`);
    return cidr;
  });
}

function parseHealthz(text: string): RunConfig['healthz'] {
  if (text === '') return undefined;
  const bare = tryParseIp(text);
  const match = /^(?:\[(?<six>[^\]]+)\]|(?<four>[^:]*)):(?<port>\d{1,5})$/.exec(text);
  const address = bare ?? tryParseIp(match?.groups?.['six'] ?? match?.groups?.['four'] ?? '');
  const port = tryParsePort(bare === undefined ? Number(match?.groups?.['port']) : defaultHealthzPort);
  if (address === undefined || port === undefined) {
    throw refuse('healthz-bind-address', text, 'it is an IP address, with or without a port, such as 0.0.0.0:10256');
  }
  return { address, port };
}

function parsePeriods(values: FlagValues): Pick<RunConfig, 'minSyncPeriod' | 'syncPeriod'> {
  const syncPeriod = parsePeriod(values, 'iptables-sync-period') ?? seconds(30);
  const minSyncPeriod = parsePeriod(values, 'iptables-min-sync-period');
  if (syncPeriod <= 0)
    throw refuse('iptables-sync-period', values.get('iptables-sync-period') ?? '', 'it must be more than 0');
  if ((minSyncPeriod ?? millis(0)) > syncPeriod) {
    throw refuse(
      'iptables-min-sync-period',
      values.get('iptables-min-sync-period') ?? '',
      'it is longer than --iptables-sync-period',
    );
  }
  return { syncPeriod, minSyncPeriod };
}

function parsePeriod(values: FlagValues, flag: string): Millis | undefined {
  const text = values.get(flag);
  if (text === undefined) return undefined;
  try {
    return parseGoDuration(text);
  } catch (cause) {
    throw refuse(flag, text, 'it is a duration such as 30s or 1m30s', cause);
  }
}

function parseFallback(values: FlagValues): RunConfig['terminatingFallback'] {
  const text = values.get('switchyard-terminating-fallback') ?? 'on';
  if (text !== 'on' && text !== 'off') throw refuse('switchyard-terminating-fallback', text, 'it is on or off');
  return text;
}

function refuse(flag: string, value: string, why: string, cause?: unknown): ConfigError {
  return new ConfigError('config.invalid', `--${flag} ${JSON.stringify(value)}: ${why}`, { cause });
}
