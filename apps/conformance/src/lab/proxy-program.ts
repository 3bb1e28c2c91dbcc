import { ConfigError, assertNever, type IpFamily } from '@switchyard/core';
import { type Lab, type LabNode, proxyModeFlags } from '@switchyard/lab';
import { dataplaneNamed, clusterCidrs, kubeProxyDefault } from '@switchyard/scenarios';
import type { DataplaneName, ScenarioAgent } from '@switchyard/scenarios';
import type { ProxyUnderTest } from '../model/report-file.ts';
import { access, constants } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface ProxyPlace {
  readonly node: LabNode;
  readonly kubeconfig: string;
  /** A KubeProxyConfiguration file. */
  readonly config: string;
  /** The same settings as flags. */
  readonly flags: readonly string[];
}

/** A proxy that can be started in a lab node. */
export interface ProxyProgram {
  readonly about: ProxyUnderTest;
  /** Reason why it cannot run with these settings; undefined: it can. */
  lacks(agent: ScenarioAgent): string | undefined;
  /** Reason why it cannot run in this lab; undefined: it can. */
  obstacle(lab: Lab): string | undefined;
  command(place: ProxyPlace, agent: ScenarioAgent): readonly [string, ...string[]];
}

/** Names of our own backends, as `--backend` takes them. */
export const backendNames = ['nftables', 'iptables-nft', 'iptables-legacy', 'ebpf-tc', 'ebpf-nftables'] as const;
/** One of our own. */
export type BackendName = (typeof backendNames)[number];

const ownProgram = fileURLToPath(new URL('../../../node-agent/bin/switchyard-agent', import.meta.url));

interface OwnBackend {
  readonly dataplane: DataplaneName;
  readonly flags: readonly string[];
}

const backends: Readonly<Record<BackendName, OwnBackend>> = {
  nftables: { dataplane: 'nftables', flags: [] },
  'iptables-nft': { dataplane: 'iptables', flags: ['--switchyard-iptables-variant=nft'] },
  'iptables-legacy': { dataplane: 'iptables', flags: ['--switchyard-iptables-variant=legacy'] },
  'ebpf-tc': { dataplane: 'ebpf', flags: ['--switchyard-ebpf-north-south=tc'] },
  'ebpf-nftables': { dataplane: 'ebpf', flags: ['--switchyard-ebpf-north-south=nftables'] },
};

/** Our own agent in one of its modes. Rejects with `ConfigError` unless it is built. */
export async function ownProxy(name: BackendName): Promise<ProxyProgram> {
  const isThere = await access(ownProgram, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!isThere) throw new ConfigError('conformance.agent', `there is no agent at ${ownProgram}; build it: ./dev build`);
  const { dataplane, flags: own } = backends[name];
  return {
    about: { name, dataplane, command: undefined },
    lacks: () => undefined,
    obstacle: ({ nodes, limitations }) =>
      dataplaneNamed(dataplane).translation === 'packets' ||
      nodes.every(({ cgroupPath, bpffsPath }) => cgroupPath !== undefined && bpffsPath !== undefined)
        ? undefined
        : limitations.join('; ') || 'the lab has no cgroup v2 or BPF file system of its own',
    command: ({ node, flags }, agent) => [
      ownProgram,
      ...flags,
      ...proxyModeFlags(node, dataplane),
      ...own,
      '--logging-format=json',
      `--switchyard-terminating-fallback=${agent.terminatingFallback}`,
      ...(agent.routerIpMode ? ['--feature-gates=SwitchyardLoadBalancerIPModeRouter=true'] : []),
      '-v=4',
    ],
  };
}

export interface ForeignOptions {
  readonly command: string;
  /** Undefined: the base name of the command's program. */
  readonly name: string | undefined;
  readonly dataplane: DataplaneName;
}

/** Words that `--proxy-cmd` may have in braces. */
const placeholders = ['kubeconfig', 'config', 'flags', 'node', 'mode'] as const;
type Placeholder = (typeof placeholders)[number];
/** A word in braces; what is `${word}` is the shell's. */
const bracedWord = /(?<!\$)\{(\w+)\}/g;

/** Any other proxy, run by a shell that becomes it. Throws `ConfigError` for a command that is empty or has unknown words in braces. */
export function foreignProxy({ command, name, dataplane }: ForeignOptions): ProxyProgram {
  if (command.trim() === '')
    throw new ConfigError('conformance.proxy-cmd', '--proxy-cmd is empty: say how to run the proxy');
  const unknown = [...command.matchAll(bracedWord)].find(([, word]) => !placeholders.some((one) => one === word));
  if (unknown !== undefined) {
    const known = placeholders.map((word) => `{${word}}`).join(' ');
    throw new ConfigError('conformance.proxy-cmd', `--proxy-cmd has ${unknown[0]}, and only ${known} are filled in`);
  }
  const first = command.trim().split(/\s+/)[0] ?? '';
  return {
    about: { name: name ?? basename(first), dataplane, command },
    lacks: ({ terminatingFallback, routerIpMode }) => {
      if (routerIpMode) return 'only Switchyard knows the ipMode Router';
      return terminatingFallback === 'off' ? 'only Switchyard can switch the terminating fallback off' : undefined;
    },
    obstacle: () => undefined,
    command: ({ node, kubeconfig, config, flags }) => {
      const values: Readonly<Record<Placeholder, string>> = {
        kubeconfig: quoted(kubeconfig),
        config: quoted(config),
        flags: flags.map(quoted).join(' '),
        node: quoted(node.nodeName),
        mode: dataplane,
      };
      return ['sh', '-c', `exec ${command.replace(bracedWord, (_, word: Placeholder) => values[word])}`];
    },
  };
}

export function quoted(text: string): string {
  return /^[\w@%+=:,./[\]-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

export interface ProxySettings {
  readonly agent: ScenarioAgent;
  readonly mode: DataplaneName;
  readonly families: readonly IpFamily[];
  readonly kubeconfig: string;
  readonly node: string;
}

/** Settings as kube-proxy's flags. Defaults are left out, because older proxies do not know all flags. */
export function proxyFlags(settings: ProxySettings): readonly string[] {
  const { agent, mode, families, kubeconfig, node } = settings;
  return [
    `--kubeconfig=${kubeconfig}`,
    `--hostname-override=${node}`,
    `--proxy-mode=${mode}`,
    '--conntrack-max-per-core=0', // the table is shared by the whole machine
    '--conntrack-min=0',
    '--oom-score-adj=0',
    `--healthz-bind-address=${anyAddress(families)}:10256`,
    ...detectionOf(agent, families).flags,
    ...(agent.masqueradeAll ? ['--masquerade-all'] : []),
    ...(agent.nodePortAddresses === 'default'
      ? []
      : [`--nodeport-addresses=${nodePortList(agent, families).join(',')}`]),
    ...(agent.localhostNodePorts ? [] : ['--iptables-localhost-nodeports=false']),
    // The default of a second between two applies would be most of what the cases wait for.
    ...(dataplaneNamed(mode).defaultMinSyncPeriod === 'kubeProxy' ? ['--iptables-min-sync-period=1ms'] : []),
  ];
}

/** Settings as a KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1), as JSON, which is YAML. */
export function proxyConfigFile(settings: ProxySettings): string {
  const { agent, mode, families, kubeconfig, node } = settings;
  const { kubeProxyMode } = dataplaneNamed(mode);
  const common = { masqueradeAll: agent.masqueradeAll, minSyncPeriod: '1ms' };
  const document = {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    clientConnection: { kubeconfig },
    hostnameOverride: node,
    mode,
    conntrack: { maxPerCore: 0, min: 0 },
    oomScoreAdj: 0,
    healthzBindAddress: `${anyAddress(families)}:10256`,
    ...detectionOf(agent, families).config,
    ...(agent.nodePortAddresses === 'default' ? {} : { nodePortAddresses: nodePortList(agent, families) }),
    ...(kubeProxyMode === kubeProxyDefault.name ? {} : { [kubeProxyMode]: common }),
    iptables: { ...common, ...(agent.localhostNodePorts ? {} : { localhostNodePorts: false }) },
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

function anyAddress(families: readonly IpFamily[]): string {
  return families.includes('IPv4') ? '0.0.0.0' : '[::]';
}

/** A list of one family leaves the other open. Empty would be the default, which is not every address in every mode. */
function nodePortList({ nodePortAddresses: given }: ScenarioAgent, families: readonly IpFamily[]): readonly string[] {
  if (typeof given === 'string') return [given];
  return given.length > 0 ? given : families.map((family) => (family === 'IPv4' ? '0.0.0.0/0' : '::/0'));
}

/** How the proxy recognizes pods, as flags and as fields of the file. */
function detectionOf(
  { detectLocal }: ScenarioAgent,
  families: readonly IpFamily[],
): { readonly flags: readonly string[]; readonly config: object } {
  switch (detectLocal.kind) {
    case 'none':
      return { flags: [], config: {} };
    case 'clusterCIDR': {
      const clusterCIDR = families.map((family) => clusterCidrs[family]).join(',');
      return { flags: [`--cluster-cidr=${clusterCIDR}`], config: { clusterCIDR } };
    }
    case 'nodeCIDR':
      return { flags: ['--detect-local-mode=NodeCIDR'], config: { detectLocalMode: 'NodeCIDR' } };
    case 'bridgeInterface':
      return {
        flags: ['--detect-local-mode=BridgeInterface', `--pod-bridge-interface=${detectLocal.name}`],
        config: { detectLocalMode: 'BridgeInterface', detectLocal: { bridgeInterface: detectLocal.name } },
      };
    case 'interfaceNamePrefix':
      return {
        flags: ['--detect-local-mode=InterfaceNamePrefix', `--pod-interface-name-prefix=${detectLocal.prefix}`],
        config: { detectLocalMode: 'InterfaceNamePrefix', detectLocal: { interfaceNamePrefix: detectLocal.prefix } },
      };
    default:
      return assertNever(detectLocal);
  }
}
