import { createHash } from 'node:crypto';
import type { Protocol, ServicePortKey } from '@switchyard/core';

/** kube-proxy's names of chains: operators and their tools search for them (pkg/proxy/iptables, Kubernetes 1.36). */
export const chainNames = {
  services: 'KUBE-SERVICES',
  externalServices: 'KUBE-EXTERNAL-SERVICES',
  nodePorts: 'KUBE-NODEPORTS',
  postrouting: 'KUBE-POSTROUTING',
  markMasq: 'KUBE-MARK-MASQ',
  forward: 'KUBE-FORWARD',
  proxyFirewall: 'KUBE-PROXY-FIREWALL',
  /** The kubelet's as well: it is filled up, never emptied. */
  kubeletFirewall: 'KUBE-FIREWALL',
  canary: 'KUBE-PROXY-CANARY',
  /** Ours: what wrote these chains, and when they were last right (mangle). Chains with kube-proxy's names are ours where it is. */
  mark: 'SWITCHYARD',
} as const;

/** Chains of one Service port: by cluster policy, by local policy, from outside, and behind source ranges. */
export type ServiceChainKind = 'SVC' | 'SVL' | 'EXT' | 'FW';

/** `KUBE-SVC-` and 16 characters that stand for the Service port. */
export function serviceChain(kind: ServiceChainKind, key: ServicePortKey, protocol: Protocol): string {
  return `KUBE-${kind}-${suffixOf(portNameOf(key) + protocol.toLowerCase())}`;
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

/** First 16 characters of base32 (RFC 4648) of SHA-256: 10 bytes of the digest. */
function suffixOf(text: string): string {
  const digest = createHash('sha256').update(text).digest();
  let result = '';
  for (let at = 0; at < 80; at += 5) {
    const byte = at >> 3;
    const pair = ((digest[byte] ?? 0) << 8) | (digest[byte + 1] ?? 0);
    result += alphabet[(pair >> (11 - (at & 7))) & 31];
  }
  return result;
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
