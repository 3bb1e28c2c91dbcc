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
  readonly chains: readonly string[];
  /** Rules of built-in chains that lead to them. */
  readonly jumps: readonly IptablesRule[];
  /** Rules that go with their chains. */
  readonly rules: number;
  /** Unwanted chains that stay, and why. */
  readonly kept: ReadonlyMap<string, string>;
  /** For `iptables-restore --noflush`: one transaction. Empty when there is nothing to remove. */
  readonly script: string;
}

/**
 * Plans the removal of chains from one table. Whatever is not to go stays as it is: a chain that a rule of somebody else's
 * chain leads to is kept, with all it leads to, because the kernel would refuse to delete it and the other would break.
 */
export function planRemoval(table: IptablesTable, wish: RemovalWish): TableRemoval {
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
  return { table: table.name, chains, jumps, rules, kept, script: scriptOf(table.name, chains, jumps) };
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
function scriptOf(table: string, chains: readonly string[], jumps: readonly IptablesRule[]): string {
  if (chains.length === 0) return '';
  const lines = [
    `*${table}`,
    ...chains.map((chain) => `:${chain} - [0:0]`),
    ...jumps.map(({ chain, spec }) => `-D ${chain} ${spec}`),
    ...chains.map((chain) => `-X ${chain}`),
    'COMMIT',
  ];
  return `${lines.join('\n')}\n`;
}
