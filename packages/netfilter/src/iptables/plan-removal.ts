import type { IptablesRule, IptablesTable } from './parse-save.ts';

/** Chains to remove. */
export interface RemovalWish {
  /** Chains for which this holds are removed, with their rules and the rules of built-in chains that lead to them. */
  readonly isUnwanted: (chain: string) => boolean;
  /** Reason to keep an unwanted chain whose removal would open or block traffic; undefined for none. */
  readonly keep?: (chain: string, table: IptablesTable) => string | undefined;
}

/** Plan for removing the unwanted chains of one table. */
export interface TableRemoval {
  readonly table: string;
  readonly chains: readonly string[];
  /** Rules of built-in chains that lead to them. */
  readonly jumps: readonly IptablesRule[];
  /** Number of rules that are removed with their chains. */
  readonly rules: number;
  /** Unwanted chains that stay, and why. */
  readonly kept: ReadonlyMap<string, string>;
  /** For `iptables-restore --noflush`. The first takes away what leads to the chains, so packets meet all of them or none. */
  readonly scripts: readonly string[];
}

/** Plans the removal of chains from one table. The kernel refuses to delete those that a foreign chain leads to: they stay. */
export function planRemoval(
  table: IptablesTable,
  wish: RemovalWish,
  chainsPerScript: number = Number.POSITIVE_INFINITY,
): TableRemoval {
  const doomed = new Set<string>();
  const kept = new Map<string, string>();
  for (const [chain, policy] of table.chains) {
    if (policy !== '-' || !wish.isUnwanted(chain)) continue;
    const why = wish.keep?.(chain, table);
    if (why === undefined) doomed.add(chain);
    else kept.set(chain, why);
  }
  keepWhatOthersUse(table, doomed, kept);
  const jumps: IptablesRule[] = [];
  let rules = 0;
  for (const rule of table.rules) {
    if (doomed.has(rule.chain)) rules++;
    else if (doomed.has(rule.target)) jumps.push(rule);
  }
  const chains = [...doomed];
  const scripts = removalParts(chains, table.rules, chainsPerScript).map((part, index) =>
    scriptOf(table.name, part, index === 0 ? jumps : []),
  );
  return { table: table.name, chains, jumps, rules, kept, scripts };
}

function keepWhatOthersUse(table: IptablesTable, doomed: Set<string>, kept: Map<string, string>): void {
  for (let isDone = false; !isDone;) {
    isDone = true;
    for (const { chain, target } of table.rules) {
      const isBuiltIn = table.chains.get(chain) !== '-';
      if (!doomed.has(target) || doomed.has(chain) || isBuiltIn) continue;
      doomed.delete(target);
      kept.set(target, `a rule of chain ${chain} leads to it`);
      isDone = false;
    }
  }
}

/** Naming a chain empties it. Names run downwards: the nft variant finds their places faster (20 times for 22,000). */
function scriptOf(table: string, chains: readonly string[], jumps: readonly IptablesRule[]): string {
  const sorted = chains.toSorted().toReversed();
  const lines = [
    `*${table}`,
    ...sorted.map((chain) => `:${chain} - [0:0]`),
    ...jumps.map(({ chain, spec }) => `-D ${chain} ${spec}`),
    ...sorted.map((chain) => `-X ${chain}`),
    'COMMIT',
  ];
  return `${lines.join('\n')}\n`;
}

/** Divides chains to delete into parts: no rule of a later part leads to an earlier one. Chains in a circle stand in the last. */
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
