import { hostname } from 'node:os';
import {
  type Cidr,
  cidrFamilyOf,
  cidrLength,
  cidrsOverlap,
  everythingOf,
  ipFamilies,
  loopbackOf,
  ConfigError,
  type IpFamily,
  type Millis,
  millis,
  nodeName,
  type NodeName,
  parseCidr,
  parseIp,
} from '@switchyard/core';
import { logLevelOf } from '@switchyard/host';
import type { EffectiveSettings } from './effective.ts';
import { effectiveFeatureGates } from './feature-gates.ts';
import type { FlagValues } from './flags/parse-flags.ts';
import type {
  ClusterPlace,
  DataplaneConfig,
  DetectLocal,
  LogConfig,
  NodePortAddresses,
  RunConfig,
  SourceConfig,
} from './run-config.ts';
import { traitsOf } from '../backends.ts';
import { proxyModeOf, stanzaOf } from './proxy-mode.ts';
import { parseBindAddress } from './schema/checks.ts';
import type { Settings } from './settings.ts';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

interface RunParts {
  readonly settings: EffectiveSettings;
  readonly flags: FlagValues;
  readonly env: Environment;
}

function purposeOf(flags: FlagValues): RunConfig['purpose'] {
  const isOn = (name: string): boolean => flags.get(name)?.setting.value === true;
  if (isOn('init-only')) return 'set-up';
  return isOn('switchyard-observe') ? 'observe' : 'run';
}

/** Converts settings to the run configuration, without notes and files. */
export function toRunConfig({ settings, flags, env }: RunParts): Omit<RunConfig, 'notes' | 'files'> {
  const { kubeProxy, switchyard } = settings;
  const stanza = stanzaOf(proxyModeOf(kubeProxy));
  return {
    kind: 'run',
    purpose: purposeOf(flags),
    ...placeOf({ settings, flags, env }),
    bindAddress: bindAddressOf(kubeProxy),
    detectLocal: detectLocalOf(kubeProxy),
    masqueradeAll: kubeProxy.isOn(`${stanza}.masqueradeAll`),
    nodePortAddresses: nodePortAddressesOf(kubeProxy),
    healthz: parseBindAddress(kubeProxy.text('healthzBindAddress')),
    metricsServer: parseBindAddress(kubeProxy.text('metricsBindAddress')),
    bindAddressHardFail: kubeProxy.isOn('bindAddressHardFail'),
    enableProfiling: kubeProxy.isOn('enableProfiling'),
    minSyncPeriod: minSyncPeriodOf(kubeProxy),
    conntrack: conntrackOf(kubeProxy),
    oomScoreAdj: kubeProxy.number('oomScoreAdj'),
    featureGates: effectiveFeatureGates(kubeProxy.gates('featureGates')),
    ...logConfigOf(kubeProxy),
    ...dataplaneOf(settings),
    terminatingFallback: switchyard.word('terminatingFallback', ['on', 'off']),
    kubeProxyRules: switchyard.word('kubeProxyRules', ['remove', 'keep']),
    drainGate: switchyard.isOn('drainGate'),
    serviceMetrics: switchyard.isOn('serviceMetrics.enabled')
      ? { kind: 'on', limit: switchyard.number('serviceMetrics.limit') }
      : { kind: 'off' },
    settings,
    flags,
  };
}

/** Returns the source of the cluster and the Node's name, also of refused settings. Throws `ConfigError` for a bad `--master`. */
export function placeOf({ settings, flags, env }: RunParts): ClusterPlace {
  return { source: sourceOf(settings, serverUrl(flags), env), nodeName: nodeNameOf(settings.kubeProxy) };
}

/** How to log. */
export function logConfigOf(kubeProxy: Settings): LogConfig {
  const logLevel = logLevelOf(kubeProxy.number('logging.verbosity'));
  return { logLevel, logFormat: kubeProxy.word('logging.format', ['text', 'json']) };
}

/** Returns the dataplane and its options. */
export function dataplaneOf({ kubeProxy, switchyard }: EffectiveSettings): DataplaneConfig {
  const mode = proxyModeOf(kubeProxy);
  return {
    mode,
    iptables: {
      variant: switchyard.word('iptablesVariant', ['auto', 'nft', 'legacy']),
      masqueradeBit: kubeProxy.number('iptables.masqueradeBit'),
      localhostNodePorts: kubeProxy.isOn('iptables.localhostNodePorts') && areLoopbackNodePorts(kubeProxy),
    },
    tcpBeLiberal: kubeProxy.isOn('conntrack.tcpBeLiberal'),
    ebpf: {
      cgroup: switchyard.text('ebpf.cgroup') || undefined,
      bpffs: switchyard.text('ebpf.bpffs'),
      interfaces: switchyard.list('ebpf.interfaces'),
      northSouth: switchyard.word('ebpf.northSouth', ['auto', 'tc', 'nftables']),
      socketLb: switchyard.word('ebpf.socketLB', ['all', 'host']),
    },
    syncPeriod: duration(kubeProxy, `${stanzaOf(mode)}.syncPeriod`),
  };
}

/** Whether `nodePortAddresses` includes 127.0.0.0/8. A list of IPv6 alone does not restrict IPv4. */
function areLoopbackNodePorts(kubeProxy: Settings): boolean {
  const { primary, cidrs } = nodePortAddressesOf(kubeProxy);
  const listed = cidrs.filter((cidr) => cidrFamilyOf(cidr) === 'IPv4');
  if (listed.length === 0) return !primary;
  return listed.some((cidr) => cidrsOverlap(cidr, loopbackOf('IPv4')));
}

/** The URL of `--master`, if given; as in client-go a scheme may be missing. Throws `ConfigError`. */
function serverUrl(flags: FlagValues): URL | undefined {
  const text = flags.get('master')?.texts.at(-1) ?? '';
  if (text === '') return undefined;
  const url = URL.parse(text.includes('://') ? text : `http://${text}`);
  if (url !== null && ['http:', 'https:'].includes(url.protocol)) return url;
  throw new ConfigError(
    'config.invalid',
    `--master ${JSON.stringify(text)}: must be a URL such as https://10.96.0.1:443`,
  );
}

function duration(settings: Settings, path: string): Millis {
  return millis(settings.number(path));
}

/** As in kube-proxy, without kubeconfig and server the agent runs in a pod. */
function sourceOf(
  { kubeProxy, switchyard }: EffectiveSettings,
  server: URL | undefined,
  env: Environment,
): SourceConfig {
  const folder = switchyard.text('manifests');
  if (folder !== '') return { kind: 'manifests', folder };
  const file = kubeProxy.text('clientConnection.kubeconfig');
  if (file !== '') return { kind: 'kubeconfig', file, server };
  return server === undefined ? { kind: 'inCluster', env } : { kind: 'server', server };
}

function nodeNameOf(settings: Settings): NodeName {
  const override = settings.text('hostnameOverride').trim();
  return nodeName((override === '' ? hostname().trim() : override).toLowerCase());
}

/** The unspecified address of either family selects the Node's address. */
function bindAddressOf(settings: Settings): RunConfig['bindAddress'] {
  const address = parseIp(settings.text('bindAddress'));
  return address === '0.0.0.0' || address === '::' ? undefined : address;
}

function detectLocalOf(settings: Settings): DetectLocal {
  switch (settings.text('detectLocalMode')) {
    case 'NodeCIDR':
      return { kind: 'nodeCIDR' };
    case 'BridgeInterface':
      return { kind: 'bridgeInterface', name: settings.text('detectLocal.bridgeInterface') };
    case 'InterfaceNamePrefix':
      return { kind: 'interfaceNamePrefix', prefix: settings.text('detectLocal.interfaceNamePrefix') };
    default:
      return { kind: 'clusterCIDR', cidrs: podCidrsOf(settings.text('clusterCIDR')) };
  }
}

function podCidrsOf(text: string): Readonly<Partial<Record<IpFamily, Cidr>>> {
  const cidrs: Partial<Record<IpFamily, Cidr>> = {};
  for (const part of text === '' ? [] : text.split(',')) {
    const cidr = parseCidr(part);
    cidrs[cidrFamilyOf(cidr)] ??= cidr;
  }
  return cidrs;
}

const rangesOfKeyword: Readonly<Record<string, readonly Cidr[]>> = {
  primary: [],
  localhost: ipFamilies.map(loopbackOf),
  all: ipFamilies.map(everythingOf),
};

/** An empty list means all addresses. */
function nodePortAddressesOf(settings: Settings): NodePortAddresses {
  const listed = settings.list('nodePortAddresses').map((one) => one.trim());
  const cidrs = listed.flatMap((one) => rangesOfKeyword[one] ?? [parseCidr(one)]);
  const isLoopback = (cidr: Cidr): boolean => {
    const range = loopbackOf(cidrFamilyOf(cidr));
    return cidrsOverlap(cidr, range) && cidrLength(cidr) >= cidrLength(range);
  };
  const loopback = ipFamilies.filter((family) =>
    cidrs.some((cidr) => cidrFamilyOf(cidr) === family && isLoopback(cidr)),
  );
  return { primary: listed.includes('primary'), cidrs: [...new Set(cidrs)], loopback };
}

/** Unset is 1 s as in kube-proxy, or the dataplane's own minimum. A flag can set 0, a file cannot. */
function minSyncPeriodOf(settings: Settings): Millis | undefined {
  const mode = proxyModeOf(settings);
  const { value, origin } = settings.at(`${stanzaOf(mode)}.minSyncPeriod`);
  return traitsOf(mode).defaultMinSyncPeriod === 'own' && origin.kind === 'default' ? undefined : millis(Number(value));
}

function conntrackOf(settings: Settings): RunConfig['conntrack'] {
  return {
    maxPerCore: settings.number('conntrack.maxPerCore'),
    min: settings.number('conntrack.min'),
    tcpEstablishedTimeout: duration(settings, 'conntrack.tcpEstablishedTimeout'),
    tcpCloseWaitTimeout: duration(settings, 'conntrack.tcpCloseWaitTimeout'),
    tcpBeLiberal: settings.isOn('conntrack.tcpBeLiberal'),
    udpTimeout: duration(settings, 'conntrack.udpTimeout'),
    udpStreamTimeout: duration(settings, 'conntrack.udpStreamTimeout'),
  };
}
