import { HostError } from '@switchyard/core';
import { birthmarkChain, iptablesName, type IptablesPlace } from '@switchyard/netfilter/iptables';
import { type KernelFiles } from '@switchyard/host';
import { legacyTables, tableFamily } from './iptables-tables.ts';
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
  const tables = legacyTables(files, place.ipFamily);
  if (tables.includes('mangle')) throw unseen(`the kernel has tables of ${name} (${tables.join(', ')})`, name);
}

async function hasBirthmark({ tables, place }: PlaceWithoutIptables): Promise<boolean> {
  const family = tableFamily(place.ipFamily);
  return (await tables.listChains({ family, table: 'mangle' })).includes(birthmarkChain);
}

function unseen(what: string, name: string): HostError {
  const next = `clean up with an image that has ${name}`;
  return new HostError('cleanup.unseen', `${what}, which were not looked at, as ${name} is not installed; ${next}`);
}
