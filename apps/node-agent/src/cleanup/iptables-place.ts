import { HostError, type IpFamily, seconds } from '@switchyard/core';
import {
  commandFailed,
  type CommandRunner,
  iptablesName,
  type IptablesPlace,
  type IptablesSave,
  isKubeProxyChain,
  nothingUnwanted,
  type PlaceRemoval,
  type RemovalWish,
  removeChains,
  type TableRemoval,
} from '@switchyard/host';
import { joinRemovals, nothingRemoved, type Removal, removalOf } from './removal.ts';

/**
 * Removes chains of one iptables variant and family, and tells it in words. A wish may depend on what is there. A table that
 * iptables cannot read is a failure if something is to go and chains of kube-proxy are in it. Never throws but for an abort.
 */
export async function removePlace(
  runner: CommandRunner,
  target: IptablesPlace,
  wish: RemovalWish | ((save: IptablesSave) => RemovalWish),
  signal: AbortSignal,
): Promise<Removal> {
  let chosen = nothingUnwanted;
  const choose = (save: IptablesSave): RemovalWish => {
    chosen = typeof wish === 'function' ? wish(save) : wish;
    return chosen;
  };
  const place = await removeChains(runner, target, choose, signal);
  const removals = [inWords(place)];
  const unread = place.status === 'looked' && chosen !== nothingUnwanted ? place.incompatible : [];
  for (const table of unread) {
    removals.push(await removalOf(() => lookInto({ runner, ipFamily: place.ipFamily, table }, signal), signal));
  }
  return joinRemovals(removals);
}

interface UnreadTable {
  readonly runner: CommandRunner;
  readonly ipFamily: IpFamily;
  readonly table: string;
}

/** Throws when a table that iptables does not read has chains of kube-proxy: people write tables of these names with nft. */
async function lookInto({ runner, ipFamily, table }: UnreadTable, signal: AbortSignal): Promise<Removal> {
  const args = ['list', 'table', ipFamily === 'IPv4' ? 'ip' : 'ip6', table];
  const result = await runner.run('nft', args, { timeout: seconds(60), signal });
  const name = iptablesName({ ipFamily, variant: 'nft' });
  if (result.exitCode !== 0)
    throw commandFailed(`cannot look into table ${table} of ${name}`, { file: 'nft', args }, result);
  const chains = [...result.stdout.matchAll(/^\s*chain (\S+) \{/gm)].filter(([, chain]) =>
    isKubeProxyChain(chain ?? ''),
  );
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
  const what = [count(chains.length, 'chain'), count(rules, 'rule'), `${count(jumps.length, 'jump')} to them`].join(
    ', ',
  );
  return `${name}, table ${table}: ${what}`;
}

function count(many: number, what: string): string {
  return `${many} ${what}${many === 1 ? '' : 's'}`;
}
