import type { IpFamily } from '@switchyard/core';
import { allOfKubeProxy, iptablesPlaces } from '@switchyard/netfilter/iptables';
import { removePlace, type RuleAccess } from './iptables-place.ts';
import { tableFamily } from './iptables-tables.ts';
import type { NftTables } from './nft-tables.ts';
import { joinRemovals, nothingRemoved, type Removal, removalOf } from './removal.ts';

/**
 * Removes the packet rules of a stopped kube-proxy: its chains in both variants of iptables, and its nft tables. Connections
 * continue, because conntrack holds their translation. Rejects only when aborted.
 */
export async function removeKubeProxyRules(
  access: RuleAccess,
  ipFamilies: readonly IpFamily[],
  signal: AbortSignal,
): Promise<Removal> {
  const removals: Removal[] = [];
  // Sequentially, because all removals need the kernel's single lock on rules.
  for (const ipFamily of ipFamilies) {
    removals.push(await removalOf(() => removeNftTable(access.tables, ipFamily), signal));
  }
  for (const place of iptablesPlaces(ipFamilies)) {
    removals.push(await removePlace(access, place, () => allOfKubeProxy, signal));
  }
  return joinRemovals(removals);
}

/** Removes the table of kube-proxy's nftables mode in one family. Rejects with `HostError`. */
export async function removeNftTable(tables: NftTables, ipFamily: IpFamily): Promise<Removal> {
  const family = tableFamily(ipFamily);
  const isRemoved = await tables.deleteTable({ family, table: kubeProxyTable });
  return isRemoved ? { ...nothingRemoved, removed: [`nftables table ${family} ${kubeProxyTable}`] } : nothingRemoved;
}

const kubeProxyTable = 'kube-proxy';
