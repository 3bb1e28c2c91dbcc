import { HostError, type IpFamily } from '@switchyard/core';
import type { KernelFiles } from '@switchyard/host';
import { birthmarkChain, type IptablesPlace, isKubeProxyChain } from '@switchyard/netfilter/iptables';
import type { NftTables } from './nft-tables.ts';

/** Access to what the kernel says of iptables tables without the programs of iptables. */
export interface TablesOfKernel {
  readonly tables: NftTables;
  readonly files: KernelFiles;
}

/** Tables of iptables. The nft variant has them in nftables, under the same names. */
const iptablesTables: ReadonlySet<string> = new Set(['raw', 'mangle', 'nat', 'filter', 'security']);

/**
 * Whether chains of this agent or of kube-proxy may be in a place. For legacy, any table counts; where the kernel cannot be asked, yes. A
 * start asks this first, because the programs of iptables take some 20 ms of CPU per place and most nodes have nothing to remove.
 */
export async function mayHaveOurChains({ tables, files }: TablesOfKernel, place: IptablesPlace): Promise<boolean> {
  const { ipFamily, variant } = place;
  try {
    if (variant === 'legacy') return legacyTables(files, ipFamily).length > 0;
    const family = tableFamily(ipFamily);
    for (const table of await tables.listTables(family)) {
      if (!iptablesTables.has(table)) continue;
      const chains = await tables.listChains({ family, table });
      if (chains.some((chain) => chain === birthmarkChain || isKubeProxyChain(chain))) return true;
    }
    return false;
  } catch (error) {
    if (error instanceof HostError) return true; // the programs report what is wrong
    throw error;
  }
}

/** Names of the tables that legacy programs have made in this network namespace. None without the kernel's module. Throws `HostError`. */
export function legacyTables(files: KernelFiles, ipFamily: IpFamily): readonly string[] {
  const names = files.read(`/proc/net/${tableFamily(ipFamily)}_tables_names`) ?? '';
  return names.split(/\s+/).filter((name) => name !== '');
}

/** The family that nftables gives the tables of iptables. */
export function tableFamily(ipFamily: IpFamily): 'ip' | 'ip6' {
  return ipFamily === 'IPv4' ? 'ip' : 'ip6';
}
