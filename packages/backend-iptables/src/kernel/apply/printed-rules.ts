import type { RuleText, TableName } from '../../render/chains.ts';
import { chainNames } from '../../render/names.ts';
import { type ChainKey, chainKey, chainOfKey, type ChainRef } from './change.ts';
import type { KernelState, RuleList } from './kernel-state.ts';
import { type ChainHash, hashRules } from './rule-hash.ts';

const nothing = hashRules([]);

/** Rules that iptables prints differently from how they were written; otherwise each reading would rewrite them. */
export class PrintedRules {
  readonly #chains = new Map<ChainKey, { readonly found: ChainHash; readonly written: ChainHash }>();
  readonly #rules = new Map<ChainKey, Map<RuleText, RuleText>>();
  /** Hashes of chains that last differed from what was written. */
  readonly #differing = new Map<ChainKey, ChainHash>();

  /** Hash as written of a chain whose hash reads as `found`. */
  hash(table: TableName, chain: string, found: ChainHash): ChainHash {
    if (this.#chains.size === 0) return found;
    const known = this.#chains.get(chainKey(table, chain));
    return known?.found === found ? known.written : found;
  }

  /** Text as written of a rule in an edited chain that reads as `found`. */
  rule(table: TableName, chain: string, found: RuleText): RuleText {
    if (this.#rules.size === 0) return found;
    return this.#rules.get(chainKey(table, chain))?.get(found) ?? found;
  }

  /** Notes chains that are not as they were written. Returns those that read as they did the last time, with their hash. */
  noteDifferences(chains: readonly ChainRef[], state: KernelState): ReadonlyMap<ChainKey, ChainHash> {
    const again = new Map<ChainKey, ChainHash>();
    for (const { table, name } of chains) {
      const key = chainKey(table, name);
      const list = state.list(table, name);
      const hash = list === undefined ? state.hashOf(table, name) : hashRules([...list.counts.keys()].toSorted());
      if (hash === undefined) continue;
      if (this.#differing.get(key) === hash) again.set(key, hash);
      this.#differing.set(key, hash);
    }
    return again;
  }

  /**
   * Learns from what was read right after `written` was written. `before`: hashes that made these chains be written again. Only a
   * chain that reads the same as before and is not empty counts; otherwise another process undoes each write. Returns the
   * number of chains that read differently.
   */
  learn(written: KernelState, found: KernelState, before: ReadonlyMap<ChainKey, ChainHash>): number {
    let learned = 0;
    for (const [key, hash] of before) {
      const { table, name } = chainOfKey(key);
      const [list, other] = [written.list(table, name), found.list(table, name)];
      if (list !== undefined && other !== undefined && this.#learnRules(key, list, other)) learned++;
      const wanted = written.hashOf(table, name);
      if (hash === nothing || wanted === undefined || wanted === hash) continue;
      if (name === chainNames.mark || found.hashOf(table, name) !== hash) continue; // the mark ages
      this.#chains.set(key, { found: hash, written: wanted });
      learned++;
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

/** Options of a rule with their values, sorted. Options that only name an extension are left out: versions differ in these. */
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
