import type { IptablesRule } from './parse-save.ts';

/**
 * Divides chains to delete into parts that can be emptied and deleted one after another: no rule of a later part
 * leads to a chain of an earlier one. `rules` may hold those of other chains too. Parts have `size` chains at most, but for
 * chains that lead to one another in a circle, which all stand in the last.
 */
export function removalParts(
  chains: readonly string[],
  rules: readonly IptablesRule[],
  size: number,
): readonly (readonly string[])[] {
  if (chains.length <= size) return chains.length === 0 ? [] : [chains];
  const order = referrersFirst(chains, rules);
  const parts: (readonly string[])[] = [];
  for (let at = 0; at < order.length; at += size) parts.push(order.slice(at, at + size));
  if (order.length === chains.length) return parts;
  const placed = new Set(order);
  return [...parts, chains.filter((chain) => !placed.has(chain))];
}

/** Chains behind all that lead to them; those in a circle, and what only they lead to, are left out. */
function referrersFirst(chains: readonly string[], rules: readonly IptablesRule[]): readonly string[] {
  const referrers = new Map(chains.map((chain) => [chain, 0]));
  const targets = new Map<string, string[]>();
  for (const { chain, target } of rules) {
    const count = referrers.get(target);
    if (count === undefined || !referrers.has(chain)) continue;
    referrers.set(target, count + 1);
    const known = targets.get(chain);
    if (known === undefined) targets.set(chain, [target]);
    else known.push(target);
  }
  const order = chains.filter((chain) => referrers.get(chain) === 0);
  for (const chain of order) {
    for (const target of targets.get(chain) ?? []) {
      const left = (referrers.get(target) ?? 0) - 1;
      referrers.set(target, left);
      if (left === 0) order.push(target); // the loop comes to it
    }
  }
  return order;
}
