import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { messageOf } from '@switchyard/core';
import { clusterCidrs, type LabNode, type LabProcess, startAgent } from '@switchyard/lab';
import { cleanUp, flushRules } from '../modes.ts';
import type { PeerMode, PeersOptions } from './options.ts';

/** A proxy that is measured. */
export interface Peer {
  /** For the table, such as `kube-proxy nftables`. */
  readonly name: string;
  readonly mode: PeerMode;
  /** Starts it on a node whose Node object is there. */
  start(node: LabNode, site: PeerSite): LabProcess;
  /** Removes all rules that it left, when it has ended. */
  reset(node: LabNode, site: PeerSite): Promise<void>;
}

/** Where a proxy finds the cluster. */
export interface PeerSite {
  readonly kubeconfig: string;
  /** For the proxy's own files. */
  readonly folder: string;
}

/** The proxies of a run, in the order of the table: per mode kube-proxy, then ours. */
export function peersOf(options: Pick<PeersOptions, 'modes' | 'kubeProxy' | 'minSyncPeriod'>): readonly Peer[] {
  return options.modes.flatMap((mode) => [
    ...(mode === 'ebpf' ? [] : [kubeProxyPeer(mode, options)]),
    switchyardPeer(mode, options.minSyncPeriod),
  ]);
}

/** First line of what a program says of its version; `unknown` if it fails. */
export async function versionOf(program: string): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(program, ['--version'], { timeout: 20_000 });
    return stdout.trim().split('\n')[0] ?? 'unknown';
  } catch (error) {
    return `unknown (${messageOf(error).split('\n')[0]})`;
  }
}

function switchyardPeer(mode: PeerMode, minSyncPeriod: number): Peer {
  const args = mode === 'iptables' ? [`--iptables-min-sync-period=${minSyncPeriod}ms`] : [];
  return {
    name: `switchyard ${mode}`,
    mode,
    start: (node, { kubeconfig }) => startAgent(node, kubeconfig, { proxyMode: mode, args }),
    reset: (node, { kubeconfig }) =>
      cleanUp(node, startAgent(node, kubeconfig, { proxyMode: mode, args: ['--cleanup'] })),
  };
}

/** kube-proxy of any version. */
export function kubeProxyPeer(
  mode: 'nftables' | 'iptables',
  options: Pick<PeersOptions, 'kubeProxy' | 'minSyncPeriod'>,
): Peer {
  return {
    name: `kube-proxy ${mode}`,
    mode,
    start: (node, { kubeconfig, folder }) => {
      const file = `${folder}/kube-proxy-${mode}.conf`;
      writeFileSync(file, JSON.stringify(kubeProxyConfig(mode, kubeconfig, options.minSyncPeriod)));
      const args = [`--config=${file}`, `--hostname-override=${node.nodeName}`];
      return node.spawn(options.kubeProxy, args, { logName: 'kube-proxy' });
    },
    reset: flushRules,
  };
}

/** A KubeProxyConfiguration that leaves alone what all of the machine shares. */
function kubeProxyConfig(mode: 'nftables' | 'iptables', kubeconfig: string, minSyncPeriod: number): object {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode,
    clientConnection: { kubeconfig },
    clusterCIDR: clusterCidrs.IPv4,
    healthzBindAddress: '0.0.0.0:10256',
    metricsBindAddress: '127.0.0.1:10249',
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    oomScoreAdj: 0,
    [mode]: { minSyncPeriod: `${minSyncPeriod}ms` },
  };
}
