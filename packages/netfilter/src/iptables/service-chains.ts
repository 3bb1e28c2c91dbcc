import { hash } from 'node:crypto';
import type { Protocol, ServicePortKey } from '@switchyard/core';

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

/** First 16 characters of base32 of SHA-256, which kube-proxy's names have. One call and a string of bytes: a tenth of the time of a Buffer. */
export function suffixOf(text: string): string {
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
