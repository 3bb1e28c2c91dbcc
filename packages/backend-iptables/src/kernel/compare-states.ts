import { chainOfKey } from './apply/change.ts';
import type { KernelState, RuleList } from './apply/kernel-state.ts';
import { type RuleText, type TableName, tableNames } from '../render/chains.ts';
import { chainNames } from '../render/names.ts';
import { isOurChain } from '@switchyard/netfilter/iptables';
import { isTargetOfOurs } from './our-chains.ts';

export interface ChainDifference {
  readonly table: TableName;
  readonly chain: string;
  readonly what: 'missing' | 'added' | 'changed';
}

/** Compares the agent's chains, and the rules that lead to them, with their recorded state. Ignores rules of other programs. */
export function compareStates(left: KernelState, found: KernelState): readonly ChainDifference[] {
  const differences: ChainDifference[] = [];
  for (const table of tableNames) compareChains(table, left, found, differences);
  for (const [key, list] of left.lists()) {
    const { table, name: chain } = chainOfKey(key);
    const now = found.list(table, chain);
    if (now === undefined) differences.push({ table, chain, what: 'missing' });
    else if (!isSameForUs(chain, list, now)) differences.push({ table, chain, what: 'changed' });
  }
  return differences;
}

function compareChains(table: TableName, left: KernelState, found: KernelState, into: ChainDifference[]): void {
  const [before, now] = [left.chainsOf(table), found.chainsOf(table)];
  for (const [chain, hash] of before) {
    const other = now.get(chain);
    if (other === undefined) into.push({ table, chain, what: 'missing' });
    else if (other !== hash && chain !== chainNames.mark) into.push({ table, chain, what: 'changed' }); // it ages
  }
  for (const chain of now.keys()) if (!before.has(chain)) into.push({ table, chain, what: 'added' });
}

function isSameForUs(chain: string, left: Readonly<RuleList>, found: Readonly<RuleList>): boolean {
  if (isOurChain(chain)) {
    const isSameEnd = (left.tail === undefined) === (found.tail === undefined);
    return isSameEnd && left.counts.size === found.counts.size && hasAll(left, found, () => true);
  }
  const leadsToUs = (rule: RuleText): boolean => isTargetOfOurs(targetOf(rule));
  if (chain === chainNames.kubeletFirewall) return hasAll(left, found, () => true);
  return hasAll(left, found, leadsToUs) && hasAll(found, left, leadsToUs);
}

/** Whether the other list has every relevant rule equally often. */
function hasAll(list: Readonly<RuleList>, other: Readonly<RuleList>, matters: (rule: RuleText) => boolean): boolean {
  return list.counts.entries().every(([rule, count]) => !matters(rule) || other.counts.get(rule) === count);
}

/** Behind the last `-j`: a comment that contains one stands before it. */
function targetOf(rule: RuleText): string {
  const padded = ` ${rule} `;
  const at = padded.lastIndexOf(' -j ');
  return at < 0 ? '' : padded.slice(at + 4, padded.indexOf(' ', at + 4));
}
