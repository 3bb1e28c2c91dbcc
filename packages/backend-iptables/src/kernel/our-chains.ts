import type { IpFamily } from '@switchyard/core';
import { isOurChain } from '@switchyard/netfilter/iptables';
import type { TableName } from '../render/chains.ts';
import { chainNames } from '../render/names.ts';

/** The kernel's own chains, which lead to all others. The kernel creates them at the first write. */
export const builtInChains: ReadonlySet<string> = new Set(['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING']);

/** The table in the words of nft: `ip nat`. */
export function tableText(ipFamily: IpFamily, table: TableName): string {
  return `${ipFamily === 'IPv4' ? 'ip' : 'ip6'} ${table}`;
}

/** Whether a chain can hold rules of the agent and of other programs. */
export function isSharedWithOthers(name: string): boolean {
  return builtInChains.has(name) || name === chainNames.kubeletFirewall;
}

/** Whether a rule in a foreign chain that jumps to this chain belongs to the agent. */
export function isTargetOfOurs(name: string): boolean {
  return isOurChain(name) || name === chainNames.kubeletFirewall;
}
