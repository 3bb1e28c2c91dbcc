import { assertNever, type IpFamily } from '@switchyard/core';
import {
  clusterCidrs,
  type DataplaneName,
  dataplaneNamed,
  kubeProxyDefault,
  type ScenarioAgent,
} from '@switchyard/scenarios';

/** Settings that every proxy understands. */
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
    ...detectionFlags(agent, families),
    ...(agent.masqueradeAll ? ['--masquerade-all'] : []),
    ...nodePortFlags(agent, families),
    ...(agent.localhostNodePorts ? [] : ['--iptables-localhost-nodeports=false']),
    // The default of a second between two applies would be most of what the cases wait for.
    ...(dataplaneNamed(mode).defaultMinSyncPeriod === 'kubeProxy' ? ['--iptables-min-sync-period=1ms'] : []),
  ];
}

/** Settings as a KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1), as JSON, which is YAML. */
export function proxyConfigFile(settings: ProxySettings): string {
  const { agent, mode, families, kubeconfig, node } = settings;
  const { detectLocal } = agent;
  const { kubeProxyMode } = dataplaneNamed(mode);
  const common = { masqueradeAll: agent.masqueradeAll, minSyncPeriod: '1ms' };
  const hasCidr = detectLocal.kind === 'clusterCIDR';
  const document = {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    clientConnection: { kubeconfig },
    hostnameOverride: node,
    mode,
    conntrack: { maxPerCore: 0, min: 0 },
    oomScoreAdj: 0,
    healthzBindAddress: `${anyAddress(families)}:10256`,
    ...(hasCidr ? { clusterCIDR: cidrsOf(families) } : {}),
    ...(detectLocal.kind === 'nodeCIDR' ? { detectLocalMode: 'NodeCIDR' } : {}),
    ...(detectLocal.kind === 'bridgeInterface'
      ? { detectLocalMode: 'BridgeInterface', detectLocal: { bridgeInterface: detectLocal.name } }
      : {}),
    ...(detectLocal.kind === 'interfaceNamePrefix'
      ? { detectLocalMode: 'InterfaceNamePrefix', detectLocal: { interfaceNamePrefix: detectLocal.prefix } }
      : {}),
    ...(agent.nodePortAddresses === 'default' ? {} : { nodePortAddresses: nodePortList(agent, families) }),
    ...(kubeProxyMode === kubeProxyDefault.name ? {} : { [kubeProxyMode]: common }),
    iptables: {
      ...common,
      ...(agent.localhostNodePorts ? {} : { localhostNodePorts: false }),
    },
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

function anyAddress(families: readonly IpFamily[]): string {
  return families.includes('IPv4') ? '0.0.0.0' : '[::]';
}

function cidrsOf(families: readonly IpFamily[]): string {
  return families.map((family) => clusterCidrs[family]).join(',');
}

function nodePortFlags(agent: ScenarioAgent, families: readonly IpFamily[]): readonly string[] {
  if (agent.nodePortAddresses === 'default') return [];
  const list = nodePortList(agent, families);
  return [`--nodeport-addresses=${list.join(',')}`];
}

/** A list of one family leaves the other open. Empty would be the default, which is not every address in every mode. */
function nodePortList({ nodePortAddresses: given }: ScenarioAgent, families: readonly IpFamily[]): readonly string[] {
  if (typeof given === 'string') return [given];
  return given.length > 0 ? given : families.map((family) => (family === 'IPv4' ? '0.0.0.0/0' : '::/0'));
}

function detectionFlags({ detectLocal }: ScenarioAgent, families: readonly IpFamily[]): readonly string[] {
  switch (detectLocal.kind) {
    case 'none':
      return [];
    case 'clusterCIDR':
      return [`--cluster-cidr=${cidrsOf(families)}`];
    case 'nodeCIDR':
      return ['--detect-local-mode=NodeCIDR'];
    case 'bridgeInterface':
      return ['--detect-local-mode=BridgeInterface', `--pod-bridge-interface=${detectLocal.name}`];
    case 'interfaceNamePrefix':
      return ['--detect-local-mode=InterfaceNamePrefix', `--pod-interface-name-prefix=${detectLocal.prefix}`];
    default:
      return assertNever(detectLocal);
  }
}
