import { hash } from 'node:crypto';
import type { Protocol, ServicePortKey } from '@switchyard/core';
import { birthmarkChain } from '@switchyard/netfilter/iptables';

/** kube-proxy's names of chains: operators and their tools search for them (pkg/proxy/iptables, Kubernetes 1.36). */
export const chainNames = {
  services: 'KUBE-SERVICES',
  externalServices: 'KUBE-EXTERNAL-SERVICES',
  nodePorts: 'KUBE-NODEPORTS',
  postrouting: 'KUBE-POSTROUTING',
  markMasq: 'KUBE-MARK-MASQ',
  forward: 'KUBE-FORWARD',
  proxyFirewall: 'KUBE-PROXY-FIREWALL',
  /** Shared with the kubelet: rules are added, the chain is never emptied. */
  kubeletFirewall: 'KUBE-FIREWALL',
  canary: 'KUBE-PROXY-CANARY',
  /** The birthmark, with the time of the last heartbeat (mangle). Where it exists, chains with kube-proxy's names are this agent's. */
  mark: birthmarkChain as 'SWITCHYARD',
} as const;

/** Counters of netfilter accounting, by the names that kube-proxy gives them; its metrics read them. */
export const nfacctNames = {
  /** Packets dropped because conntrack called them INVALID. */
  invalidDropped: 'ct_state_invalid_dropped_pkts',
  /** Connections to NodePorts on 127.0.0.0/8. */
  localhostNodePorts: 'localhost_nps_accepted_pkts',
} as const;

/** The chains that one Service port can have: by cluster policy, by local policy, from outside, and behind source ranges. */
export type ServiceChainNames = Readonly<Record<'SVC' | 'SVL' | 'EXT' | 'FW', string>>;

/** All names that belong to a Service port, `KUBE-SVC-` and 16 characters that stand for it; they differ by kind alone. */
export function serviceChains(key: ServicePortKey, protocol: Protocol): ServiceChainNames {
  const suffix = suffixOf(portNameOf(key) + protocol.toLowerCase());
  return {
    SVC: `KUBE-SVC-${suffix}`,
    SVL: `KUBE-SVL-${suffix}`,
    EXT: `KUBE-EXT-${suffix}`,
    FW: `KUBE-FW-${suffix}`,
  };
}

/** `KUBE-SEP-` and 16 characters that stand for one endpoint (`10.0.0.1:80`, `[fd00::1]:80`) of a Service port. */
export function endpointChain(key: ServicePortKey, protocol: Protocol, endpoint: string): string {
  return `KUBE-SEP-${suffixOf(portNameOf(key) + protocol.toLowerCase() + endpoint)}`;
}

/** `namespace/name:port` without the protocol, or `namespace/name` for a port without a name: as in comments. */
export function portNameOf(key: ServicePortKey): string {
  const name = key.slice(0, key.lastIndexOf('/'));
  return name.endsWith(':') ? name.slice(0, -1) : name;
}

/** First 16 characters of base32 of SHA-256. One call and a string of bytes: a tenth of the time of a Buffer. */
function suffixOf(text: string): string {
  const digest = hash('sha256', text, 'binary');
  let result = '';
  for (let at = 0; at < 80; at += 5) {
    const byte = at >> 3;
    const pair = (digest.charCodeAt(byte) << 8) | digest.charCodeAt(byte + 1);
    result += alphabet[(pair >> (11 - (at & 7))) & 31];
  }
  return result;
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
