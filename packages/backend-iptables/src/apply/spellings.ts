import type { RuleText, TableName } from '../chains.ts';
import { chainNames } from '../names.ts';
import { type ChainKey, chainKey, chainOfKey, type ChainRef } from './change.ts';
import type { KernelState, RuleList } from './kernel-state.ts';
import { type ChainHash, hashRules } from './rule-hash.ts';

/** A chain without rules. */
const nothing = hashRules([]);

/**
 * Rules that an iptables of another version prints in other words than ours. What was just written and reads differently is such
 * a spelling: from then on it counts as what was written, or it would be written again for ever.
 */
export class Spellings {
  readonly #chains = new Map<ChainKey, { readonly found: ChainHash; readonly written: ChainHash }>();
  readonly #rules = new Map<ChainKey, Map<RuleText, RuleText>>();
  /** How chains read that were last found to be other than they were written. */
  readonly #surprises = new Map<ChainKey, ChainHash>();

  /** What was written, when a chain reads as `found`. */
  hash(table: TableName, chain: string, found: ChainHash): ChainHash {
    if (this.#chains.size === 0) return found;
    const known = this.#chains.get(chainKey(table, chain));
    return known?.found === found ? known.written : found;
  }

  /** What was written, when a rule of a chain that is edited reads as `found`. */
  rule(table: TableName, chain: string, found: RuleText): RuleText {
    if (this.#rules.size === 0) return found;
    return this.#rules.get(chainKey(table, chain))?.get(found) ?? found;
  }

  /** Takes in chains that are not as they were left. Returns those that read as they did the last time, and how. */
  noteSurprises(chains: readonly ChainRef[], state: KernelState): ReadonlyMap<ChainKey, ChainHash> {
    const again = new Map<ChainKey, ChainHash>();
    for (const { table, name } of chains) {
      const key = chainKey(table, name);
      const list = state.list(table, name);
      const hash = list === undefined ? state.hashOf(table, name) : hashRules([...list.counts.keys()].toSorted());
      if (hash === undefined) continue;
      if (this.#surprises.get(key) === hash) again.set(key, hash);
      this.#surprises.set(key, hash);
    }
    return again;
  }

  /**
   * Takes in what was read right after `written` was written. `before`: how chains read that were written again because of it.
   * Only what reads the same as before is a spelling, and what holds something: else somebody undoes what we do. Returns how
   * many chains read differently.
   */
  learn(written: KernelState, found: KernelState, before: ReadonlyMap<ChainKey, ChainHash>): number {
    let learned = 0;
    for (const [key, hash] of before) {
      const { table, name } = chainOfKey(key);
      const wanted = written.hashOf(table, name);
      if (hash === nothing || wanted === undefined || wanted === hash) continue;
      if (name === chainNames.mark || found.hashOf(table, name) !== hash) continue; // the mark ages
      this.#chains.set(key, { found: hash, written: wanted });
      learned++;
    }
    for (const key of before.keys()) {
      const { table, name } = chainOfKey(key);
      const [list, other] = [written.list(table, name), found.list(table, name)];
      if (list !== undefined && other !== undefined && this.#learnRules(key, list, other)) learned++;
    }
    return learned;
  }

  #learnRules(key: ChainKey, written: Readonly<RuleList>, found: Readonly<RuleList>): boolean {
    const missing = new Map<string, RuleText>();
    for (const rule of written.counts.keys()) if (!found.counts.has(rule)) missing.set(gist(rule), rule);
    if (missing.size === 0) return false;
    const rules = this.#rules.get(key) ?? new Map<RuleText, RuleText>();
    for (const rule of found.counts.keys()) {
      const ours = written.counts.has(rule) ? undefined : missing.get(gist(rule));
      if (ours !== undefined) rules.set(rule, ours);
    }
    this.#rules.set(key, rules);
    return rules.size > 0;
  }
}

/** The options of a rule, each with its values, in no order; without those that only name an extension: versions differ in these. */
function gist(rule: RuleText): string {
  const options: string[][] = [];
  let isNegated = false;
  for (const [word] of rule.matchAll(/"(?:\\.|[^"\\])*"|\S+/g)) {
    if (word === '!') isNegated = true;
    else if (word.startsWith('-') || options.length === 0) {
      options.push(isNegated ? ['!', word] : [word]);
      isNegated = false;
    } else options.at(-1)?.push(word);
  }
  return options
    .filter(([name]) => name !== '-m')
    .map((words) => words.join(' '))
    .toSorted()
    .join(' ');
}
