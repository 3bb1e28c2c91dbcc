import type { TableFamily, TablePlace } from '@switchyard/netfilter';
import { HostError, type IpFamily } from '@switchyard/core';
import type { KernelFiles } from '@switchyard/host';
import { birthmarkChain, type IptablesPlace, isKubeProxyChain, iptablesName } from '@switchyard/netfilter/iptables';

/** nftables tables of any owner, by name. Reads neither sets nor rules. Methods reject with `HostError`. */
export interface NftTables {
  /** Empty if the kernel has no nftables. */
  listTables(family: TableFamily): Promise<readonly string[]>;
  /** Names of the chains of a table; empty if there is no such table. */
  listChains(place: NftTable): Promise<readonly string[]>;
  /** False if there is no such table. */
  deleteTable(place: NftTable): Promise<boolean>;
}

type NftTable = Pick<TablePlace, 'family' | 'table'>;

/** The tables of this network namespace's kernel, over netlink. */
export const kernelTables: NftTables = {
  listTables: async (family) => (await import('@switchyard/netfilter')).listTables(family),
  listChains: async (place) => (await import('@switchyard/netfilter')).listChains(place),
  deleteTable: async (place) => (await import('@switchyard/netfilter')).deleteTable(place),
};

/** Access without the programs of iptables. */
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
function legacyTables(files: KernelFiles, ipFamily: IpFamily): readonly string[] {
  const names = files.read(`/proc/net/${tableFamily(ipFamily)}_tables_names`) ?? '';
  return names.split(/\s+/).filter((name) => name !== '');
}

/** The family that nftables gives the tables of iptables. */
export function tableFamily(ipFamily: IpFamily): 'ip' | 'ip6' {
  return ipFamily === 'IPv4' ? 'ip' : 'ip6';
}

/**
 * Rejects with `HostError` if rules of this agent may be in a place whose iptables programs are not installed. Another image may
 * have written them. Such rules always have a birthmark in table mangle.
 */
export async function refuseUnseenRules({ tables, files }: TablesOfKernel, place: IptablesPlace): Promise<void> {
  const name = iptablesName(place);
  let what = `rules of this agent are in the tables of ${name}`;
  if (place.variant === 'nft') {
    const chains = await tables.listChains({ family: tableFamily(place.ipFamily), table: 'mangle' });
    if (!chains.includes(birthmarkChain)) return;
  } else {
    const names = legacyTables(files, place.ipFamily);
    if (!names.includes('mangle')) return;
    what = `the kernel has tables of ${name} (${names.join(', ')})`;
  }
  const next = `clean up with an image that has ${name}`;
  throw new HostError('cleanup.unseen', `${what}, which were not looked at, as ${name} is not installed; ${next}`);
}
