import { HostError, type IpFamily } from '@switchyard/core';
import { type CommandRunner } from '@switchyard/host';
import {
  ifBirthmarked,
  iptablesName,
  iptablesPlaces,
  type PlaceRemoval,
  removeChains,
} from '@switchyard/netfilter/iptables';

/** Removes our chains in both variants; returns descriptions. Rejects with `HostError` after removing the rest. */
export async function removeRules(
  runner: CommandRunner,
  ipFamily: IpFamily,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const removed: string[] = [];
  const faults: Error[] = [];
  for (const place of iptablesPlaces([ipFamily])) {
    const removal = await removeChains(runner, place, ifBirthmarked, signal);
    removed.push(...wordsOf(removal));
    if (removal.status === 'failed') faults.push(removal.error);
  }
  if (faults.length === 0) return removed;
  const message = `cannot remove all chains: ${faults.map((fault) => fault.message).join('; ')}`;
  throw new HostError('iptables.cleanup', message, {
    cause: faults.length === 1 ? faults[0] : new AggregateError(faults),
  });
}

function wordsOf(removal: PlaceRemoval): readonly string[] {
  if (removal.status === 'skipped') return [];
  return removal.tables.flatMap(({ table, chains, rules, jumps }) => {
    if (chains.length === 0) return [];
    const place = `table ${table} of ${iptablesName(removal)}`;
    return [`${chains.length} chains with ${rules} rules, and ${jumps.length} rules that led to them, from ${place}`];
  });
}
