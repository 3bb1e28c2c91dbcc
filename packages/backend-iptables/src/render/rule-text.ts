import type { IpFamily, Protocol } from '@switchyard/core';
import type { RuleText } from './chains.ts';

/** A transport protocol as iptables spells it. */
export type ProtocolName = Lowercase<Protocol>;

/** A rule from its parts in the order in which `iptables-save` prints them; empty parts are left out. */
export function ruleOf(...parts: readonly string[]): RuleText {
  let text = '';
  for (const part of parts) if (part !== '') text += text === '' ? part : ` ${part}`;
  return text;
}

/** The comment match. Names of Services and ports need no escaping; `iptables-save` quotes all but single words. */
export function commentOf(text: string): string {
  return `-m comment --comment "${text}"`;
}

export function hexOf(mark: number): string {
  return `0x${(mark >>> 0).toString(16)}`;
}

export function hostMask(ipFamily: IpFamily): string {
  return ipFamily === 'IPv4' ? '255.255.255.255' : 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff';
}

/** The target that answers with "port unreachable", for TCP as well, as kube-proxy does. */
export function rejectTarget(ipFamily: IpFamily): string {
  return `-j REJECT --reject-with ${ipFamily === 'IPv4' ? 'icmp-port-unreachable' : 'icmp6-port-unreachable'}`;
}
