import type { IptablesRule, IptablesTable } from './parse-save.ts';

/** Which chains are to go. */
export interface RemovalWish {
  /** Chains for which this holds go, with the rules in them and the rules of built-in chains that lead to them. */
  readonly isUnwanted: (chain: string) => boolean;
  /** Chains that stay all the same where it would open or close something: why, or undefined. */
  readonly keep?: (chain: string, table: IptablesTable) => string | undefined;
}

/** How one table loses its unwanted chains. */
export interface TableRemoval {
  readonly table: string;
  /** Those that lead to others before those. */
  readonly chains: readonly string[];
  /** Rules of built-in chains that lead to them. */
  readonly jumps: readonly IptablesRule[];
  /** Rules that go with their chains. */
  readonly rules: number;
  /** Unwanted chains that stay, and why. */
  readonly kept: ReadonlyMap<string, string>;
  /** For `iptables-restore --noflush`, one transaction each: the first cuts all of it off. None when there is nothing to remove. */
  readonly scripts: readonly string[];
}

/**
 * Plans the removal of chains from one table. Whatever is not to go stays as it is: a chain that a rule of somebody else's
 * chain leads to is kept, with all it leads to, because the kernel would refuse to delete it and the other would break. No
 * transaction names more than `limit` chains.
 */
export function planRemoval(table: IptablesTable, wish: RemovalWish, limit: number = Infinity): TableRemoval {
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
  const chains = fromTheTop(table, doomed);
  return {
    table: table.name,
    chains,
    jumps,
    rules,
    kept,
    scripts: scriptsOf({ table: table.name, chains, jumps }, limit),
  };
}

/** A chain can go when nothing leads to it any more. */
function fromTheTop({ rules }: IptablesTable, doomed: ReadonlySet<string>): readonly string[] {
  const leading = new Map<string, number>();
  const targets = new Map<string, string[]>();
  for (const { chain, target } of rules) {
    if (!doomed.has(chain) || !doomed.has(target)) continue;
    leading.set(target, (leading.get(target) ?? 0) + 1);
    const some = targets.get(chain);
    if (some === undefined) targets.set(chain, [target]);
    else some.push(target);
  }
  const order = [...doomed].filter((chain) => !leading.has(chain));
  for (const chain of order) {
    for (const target of targets.get(chain) ?? []) {
      const left = (leading.get(target) ?? 0) - 1;
      leading.set(target, left);
      if (left === 0) order.push(target);
    }
  }
  return order;
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

/** A chain that is named is emptied, so that rules between the chains are gone before the first one is deleted. */
function scriptsOf(
  { table, chains, jumps }: Pick<TableRemoval, 'table' | 'chains' | 'jumps'>,
  limit: number,
): readonly string[] {
  const scripts: string[] = [];
  for (let at = 0; at < chains.length; at += limit) {
    const part = chains.slice(at, at + limit);
    const lines = [
      `*${table}`,
      ...part.map((chain) => `:${chain} - [0:0]`),
      ...(at === 0 ? jumps.map(({ chain, spec }) => `-D ${chain} ${spec}`) : []),
      ...part.map((chain) => `-X ${chain}`),
      'COMMIT',
    ];
    scripts.push(`${lines.join('\n')}\n`);
  }
  return scripts;
}
