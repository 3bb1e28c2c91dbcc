import { builtInChains, type FakeTable } from './fake-table.ts';
import type { FakeRule, Target } from './rule-types.ts';

/** The kernel's chains from which a target may be reached; targets that are not named may be anywhere. */
const hooks: Partial<Readonly<Record<Target['kind'], readonly string[]>>> = {
  DNAT: ['PREROUTING', 'OUTPUT'],
  MASQUERADE: ['POSTROUTING'],
};

/** Whether packets that began in a chain of the kernel's may meet the rule. */
export function isAllowedFrom(start: string, { target }: FakeRule): boolean {
  return target === undefined || hooks[target.kind]?.includes(start) !== false;
}

/**
 * Why the kernel would not let packets into the table: from a chain of its own it would come back to a chain it came from, or
 * to a target that has no place there. Undefined if all is well.
 */
export function faultOnTheWay(table: FakeTable): string | undefined {
  for (const start of builtInChains[table.name] ?? []) {
    const done = new Set<string>();
    const above = new Set<string>();
    const visit = (name: string): string | undefined => {
      if (above.has(name)) return 'Too many links';
      if (done.has(name)) return undefined;
      done.add(name);
      above.add(name);
      for (const { rule } of table.chains.get(name)?.entries ?? []) {
        const { target } = rule;
        if (target === undefined) continue;
        if (!isAllowedFrom(start, rule)) return 'Invalid argument';
        const found = target.kind === 'chain' ? visit(target.chain) : undefined;
        if (found !== undefined) return found;
      }
      above.delete(name);
      return undefined;
    };
    const found = visit(start);
    if (found !== undefined) return found;
  }
  return undefined;
}
