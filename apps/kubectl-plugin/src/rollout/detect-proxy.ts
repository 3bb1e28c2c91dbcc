import { ConfigError } from '@switchyard/core';
import type { DaemonSet, Node } from '@switchyard/core/kubernetes';
import type { KnownProxy } from '@switchyard/loss';

/** The Service proxy of a cluster. */
export interface DetectedProxy {
  /** Its timing. */
  readonly timing: KnownProxy;
  /** For people: `kube-proxy 1.33`. */
  readonly name: string;
  /** Origin of the name. */
  readonly from: string;
  /** Whether nothing in the cluster names it. */
  readonly isAssumed: boolean;
}

/** Objects that show a proxy. */
export interface ProxyObjects {
  /** Those of kube-system; undefined if they cannot be read. */
  readonly daemonSets: readonly DaemonSet[] | undefined;
  /** The field of Cilium's ConfigMap; undefined if it is not set. */
  readonly kubeProxyReplacement: string | undefined;
  readonly nodes: readonly Node[];
}

const names = ['kube-proxy', 'cilium', 'switchyard', 'switchyard-iptables'] as const;
type ProxyName = (typeof names)[number];

/** Reads `--proxy NAME[:VERSION]`. Throws `ConfigError`. */
export function namedProxy(text: string): DetectedProxy {
  const [name = '', version = ''] = text.split(':');
  const minor = minorOf(version);
  if (!isName(name) || (version !== '' && minor === undefined)) {
    const example =
      'one of kube-proxy, cilium, switchyard, switchyard-iptables, with or without a version: kube-proxy:1.25';
    throw new ConfigError('rollout.proxy', `--proxy ${JSON.stringify(text)}: not ${example}`);
  }
  return proxyOf(name, minor, { from: '--proxy', isAssumed: false });
}

/** Finds the proxy by the images of DaemonSets. Without one it is taken for kube-proxy in the version of the oldest kubelet. */
export function detectProxy({ daemonSets, kubeProxyReplacement, nodes }: ProxyObjects): DetectedProxy {
  const found = (daemonSets ?? []).filter(isRunning).flatMap(proxyIn);
  const cilium = found.find(({ name }) => name === 'cilium');
  const other = found.find(({ name }) => name !== 'cilium');
  const isReplaced = kubeProxyReplacement === undefined || /^(true|strict)$/.test(kubeProxyReplacement);
  const chosen = cilium !== undefined && (other === undefined || isReplaced) ? cilium : other;
  const kubelet = oldestKubelet(nodes);
  if (chosen === undefined) {
    const from =
      daemonSets === undefined
        ? 'DaemonSets of kube-system cannot be read'
        : 'no DaemonSet of kube-system is a known proxy';
    return proxyOf('kube-proxy', kubelet, { from, isAssumed: true });
  }
  const minor = chosen.minor ?? (chosen.name === 'kube-proxy' ? kubelet : undefined);
  return proxyOf(chosen.name, minor, { from: `DaemonSet kube-system/${chosen.daemonSet}`, isAssumed: false });
}

/** The minor version of the oldest kubelet; undefined if no node has one. */
export function oldestKubelet(nodes: readonly Node[]): number | undefined {
  const minors = nodes.flatMap(({ status }) => minorOf(status?.nodeInfo?.kubeletVersion ?? '') ?? []);
  return minors.length === 0 ? undefined : Math.min(...minors);
}

interface Found {
  readonly name: ProxyName;
  readonly minor: number | undefined;
  readonly daemonSet: string;
}

function proxyIn({ metadata, spec }: DaemonSet): readonly Found[] {
  const labels = spec?.template.metadata?.labels ?? {};
  const isObserver = labels['app.kubernetes.io/component'] === 'observer';
  const daemonSet = metadata.name ?? '';
  return (spec?.template.spec?.containers ?? []).flatMap(({ image = '' }): readonly Found[] => {
    const [, path = '', tag = ''] = /^(.*?)(?::([\w.-]+))?(?:@.*)?$/.exec(image) ?? [];
    const program = path.split('/').at(-1) ?? '';
    const minor = minorOf(tag);
    if (/^agent-(nftables|ebpf|iptables)$/.test(program)) {
      const name = program === 'agent-iptables' ? 'switchyard-iptables' : 'switchyard';
      return isObserver ? [] : [{ name, minor: undefined, daemonSet }];
    }
    if (program.startsWith('kube-proxy')) return [{ name: 'kube-proxy', minor, daemonSet }];
    return /^cilium(-ci)?$/.test(program) || daemonSet === 'anetd' ? [{ name: 'cilium', minor, daemonSet }] : [];
  });
}

/** A DaemonSet whose nodeSelector no node has is how a proxy is turned off. */
function isRunning({ status }: DaemonSet): boolean {
  return status?.desiredNumberScheduled !== 0;
}

function proxyOf(
  name: ProxyName,
  minor: number | undefined,
  origin: Pick<DetectedProxy, 'from' | 'isAssumed'>,
): DetectedProxy {
  const shown = minor === undefined ? name : `${name} 1.${minor}`;
  if (name === 'kube-proxy') {
    return { ...origin, timing: minor !== undefined && minor < 26 ? 'kube-proxy-1.25' : 'kube-proxy', name: shown };
  }
  if (name === 'cilium') {
    return { ...origin, timing: minor !== undefined && minor >= 18 ? 'cilium' : 'cilium-1.17', name: shown };
  }
  return { ...origin, timing: name, name };
}

function minorOf(version: string): number | undefined {
  const [, minor] = /^v?1\.(\d+)/.exec(version) ?? [];
  return minor === undefined ? undefined : Number(minor);
}

function isName(text: string): text is ProxyName {
  return names.some((name) => name === text);
}
