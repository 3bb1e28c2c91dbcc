import { type IpFamily, seconds } from '@switchyard/core';
import {
  commandFailed,
  type CommandRunner,
  iptablesPlaces,
  isProgramMissing,
  type RemovalWish,
} from '@switchyard/host';
import { removePlace } from './iptables-place.ts';
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
  for (const place of iptablesPlaces(ipFamilies)) removals.push(await removePlace(runner, place, wish, signal));
  return joinRemovals(removals);
}

/** Removes what the nftables mode of kube-proxy left in one family. Rejects with `HostError`. */
export async function removeNftTable(runner: CommandRunner, ipFamily: IpFamily, signal: AbortSignal): Promise<Removal> {
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
