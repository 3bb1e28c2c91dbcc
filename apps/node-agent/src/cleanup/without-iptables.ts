import { HostError, type IpFamily } from '@switchyard/core';
import { birthmarkChain, iptablesName, type IptablesPlace } from '@switchyard/netfilter/iptables';
import { type KernelFiles } from '@switchyard/host';
import type { NftTables } from './nft-tables.ts';

/** Access to a place without iptables. */
export interface PlaceWithoutIptables {
  readonly tables: NftTables;
  readonly files: KernelFiles;
  readonly place: IptablesPlace;
}

/**
 * Rejects with `HostError` if rules of this agent may be in a place whose iptables programs are not installed. Another image may
 * have written them. Such rules always have a birthmark in table mangle.
 */
export async function refuseUnseenRules(unread: PlaceWithoutIptables): Promise<void> {
  const { place, files } = unread;
  const name = iptablesName(place);
  if (place.variant === 'nft') {
    if (!(await hasBirthmark(unread))) return;
    throw unseen(`rules of this agent are in the tables of ${name}`, name);
  }
  const tables = files.read(legacyTables[place.ipFamily])?.split(/\s+/) ?? [];
  if (tables.includes('mangle')) throw unseen(`the kernel has tables of ${name} (${tables.join(', ')})`, name);
}

/** Names of the tables that legacy programs have made in this network namespace; no file without the kernel's module. */
const legacyTables: Readonly<Record<IpFamily, string>> = {
  IPv4: '/proc/net/ip_tables_names',
  IPv6: '/proc/net/ip6_tables_names',
};

async function hasBirthmark({ tables, place }: PlaceWithoutIptables): Promise<boolean> {
  const family = place.ipFamily === 'IPv4' ? 'ip' : 'ip6';
  return (await tables.listChains({ family, table: 'mangle' })).includes(birthmarkChain);
}

function unseen(what: string, name: string): HostError {
  const next = `clean up with an image that has ${name}`;
  return new HostError('cleanup.unseen', `${what}, which were not looked at, as ${name} is not installed; ${next}`);
}
