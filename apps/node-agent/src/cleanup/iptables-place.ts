import { HostError, type IpFamily } from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import {
  iptablesName,
  type IptablesPlace,
  type IptablesSave,
  isBirthmarked,
  isKubeProxyChain,
  nothingUnwanted,
  type PlaceRemoval,
  type RemovalWish,
  removeChains,
  type TableRemoval,
} from '@switchyard/netfilter/iptables';
import { tableFamily, type NftTables } from './tables.ts';
import { joinRemovals, nothingRemoved, type Removal, removalOf } from './removal.ts';

/** Access to iptables rules: by its programs, and by netlink for tables that those cannot read. */
export interface RuleAccess {
  readonly runner: CommandRunner;
  readonly tables: NftTables;
}

/** Removal from a place; `isOurs`: this agent's birthmark was there. */
export interface PlaceOutcome extends Removal {
  readonly isOurs: boolean;
}

/**
 * Removes chains of one iptables variant and family, and reports it as text. The wish may depend on whether this agent wrote them. A
 * table that iptables cannot read is a failure if it has chains of kube-proxy that the wish would remove. Rejects only when aborted.
 */
export async function removePlace(
  { runner, tables }: RuleAccess,
  target: IptablesPlace,
  wish: (isOurs: boolean) => RemovalWish,
  signal: AbortSignal,
): Promise<PlaceOutcome> {
  let isOurs = false;
  let chosen = nothingUnwanted;
  const choose = (save: IptablesSave): RemovalWish => {
    isOurs = isBirthmarked(save);
    chosen = wish(isOurs);
    return chosen;
  };
  const place = await removeChains(runner, target, choose, signal);
  const removals = [inWords(place)];
  const unread = place.status === 'looked' && chosen !== nothingUnwanted ? place.incompatible : [];
  for (const table of unread) {
    removals.push(await removalOf(() => refuseUnreadableChains(tables, place.ipFamily, table), signal));
  }
  return { ...joinRemovals(removals), isOurs };
}

/** Throws if a table that iptables cannot read has chains of kube-proxy. Such tables were written with nft. */
async function refuseUnreadableChains(tables: NftTables, ipFamily: IpFamily, table: string): Promise<Removal> {
  const found = await tables.listChains({ family: tableFamily(ipFamily), table });
  const name = iptablesName({ ipFamily, variant: 'nft' });
  const chains = found.filter(isKubeProxyChain);
  if (chains.length === 0) return nothingRemoved;
  const why = 'iptables refuses the table, because nft wrote into it what iptables cannot express; remove that first';
  throw new HostError(
    'cleanup.unreadable',
    `cannot remove ${count(chains.length, 'chain')} with kube-proxy's names from table ${table} of ${name}: ${why}`,
  );
}

function inWords(place: PlaceRemoval): Removal {
  const name = iptablesName(place);
  if (place.status === 'skipped') return { ...nothingRemoved, skipped: [`${name}: ${place.reason}`] };
  return {
    removed: place.tables.filter(({ chains }) => chains.length > 0).map((table) => tableText(name, table)),
    kept: place.tables.flatMap(({ table, kept }) =>
      [...kept].map(([chain, why]) => `chain ${chain} of ${name}, table ${table}: ${why}`),
    ),
    skipped: [],
    failures: place.status === 'failed' ? [place.error] : [],
  };
}

function tableText(name: string, { table, chains, rules, jumps }: TableRemoval): string {
  const counts = [count(chains.length, 'chain'), count(rules, 'rule'), `${count(jumps.length, 'jump')} to them`];
  return `${name}, table ${table}: ${counts.join(', ')}`;
}

function count(many: number, what: string): string {
  return `${many} ${what}${many === 1 ? '' : 's'}`;
}
