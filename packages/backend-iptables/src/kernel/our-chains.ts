import type { IpFamily } from '@switchyard/core';
import { isOurChain } from '@switchyard/netfilter/iptables';
import type { TableName } from '../render/chains.ts';
import { chainNames } from '../render/names.ts';

/** The kernel's own chains, from which others are reached: they are there when they are first written to. */
export const builtInChains: ReadonlySet<string> = new Set(['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING']);

/** The table in the words of nft: `ip nat`. */
export function tableText(ipFamily: IpFamily, table: TableName): string {
  return `${ipFamily === 'IPv4' ? 'ip' : 'ip6'} ${table}`;
}

/** Whether a chain can hold rules of ours among those of others. */
export function isSharedWithOthers(name: string): boolean {
  return builtInChains.has(name) || name === chainNames.kubeletFirewall;
}

/** Whether a jump to this chain in a chain of others is a rule of ours. */
export function isTargetOfOurs(name: string): boolean {
  return isOurChain(name) || name === chainNames.kubeletFirewall;
}
