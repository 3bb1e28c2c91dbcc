import { HostError, type IpFamily, seconds } from '@switchyard/core';
import {
  commandFailed,
  type CommandRunner,
  iptablesName,
  iptablesPlaces,
  isKubeProxyChain,
  isProgramMissing,
  type PlaceRemoval,
  type RemovalWish,
  removeChains,
  type TableRemoval,
} from '@switchyard/host';
import { joinRemovals, nothingRemoved, type Removal, removalOf } from './removal.ts';

/** What is to be removed, and with what. */
export interface KubeProxyRulesOptions {
  readonly runner: CommandRunner;
  readonly ipFamilies: readonly IpFamily[];
  readonly wish: RemovalWish;
}

/**
 * Removes the packet rules of a kube-proxy that runs no more: its chains in both variants of iptables, and its nft tables.
 * Flows it translated go on: that knowledge is the connection tracking's. Never throws but for an abort.
 */
export async function removeKubeProxyRules(options: KubeProxyRulesOptions, signal: AbortSignal): Promise<Removal> {
  const { runner, ipFamilies, wish } = options;
  const removals: Removal[] = [];
  // One after another: all of them contend for the kernel's one lock on rules.
  for (const ipFamily of ipFamilies) {
    removals.push(await removalOf(() => removeNftTable(runner, ipFamily, signal), signal));
  }
  for (const target of iptablesPlaces(ipFamilies)) {
    const place = await removeChains(runner, target, wish, signal);
    removals.push(inWords(place));
    const unread = place.status === 'looked' ? place.incompatible : [];
    for (const table of unread) {
      removals.push(await removalOf(() => lookInto({ runner, ipFamily: place.ipFamily, table }, signal), signal));
    }
  }
  return joinRemovals(removals);
}

async function removeNftTable(runner: CommandRunner, ipFamily: IpFamily, signal: AbortSignal): Promise<Removal> {
  const table = `${ipFamily === 'IPv4' ? 'ip' : 'ip6'} kube-proxy`;
  const args = ['delete', 'table', ...table.split(' ')];
  try {
    const result = await runner.run('nft', args, { timeout: seconds(120), signal });
    if (result.exitCode === 0) return { ...nothingRemoved, removed: [`nftables table ${table}`] };
    if (/No such file or directory/.test(result.stderr)) return nothingRemoved;
    throw commandFailed(`cannot remove nftables table ${table}`, { file: 'nft', args }, result);
  } catch (error) {
    if (!isProgramMissing(error)) throw error;
    return { ...nothingRemoved, skipped: [`nftables table ${table}: nft is not installed`] };
  }
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
    `cannot remove ${count(chains.length, 'chain')} of kube-proxy from table ${table} of ${name}: ${why}`,
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
