import type { Chain, ChainRule, RuleText, TableName } from '../../render/chains.ts';
import { type ChainHash, hashRules } from './rule-hash.ts';

export interface ChainRef {
  readonly table: TableName;
  readonly name: string;
}

/** `nat KUBE-SERVICES`: a chain as the key of a map. */
export type ChainKey = `${TableName} ${string}`;

export function chainKey(table: TableName, name: string): ChainKey {
  return `${table} ${name}`;
}

/** A rule of a shared chain as the key of a map: that of its chain, and its text. */
export function entryKey({ table, chain, rule }: ChainRule): string {
  return `${chainKey(table, chain)} ${rule}`;
}

/** Returns the rules of a chain, kept or rendered again: keeping those of thousands of Services costs too much memory. */
type RulesOf = (chain: string) => readonly RuleText[];

export function chainsOfRules(rules: Iterable<ChainRule>): readonly ChainRef[] {
  const chains = new Map<ChainKey, ChainRef>();
  for (const { table, chain } of rules) chains.set(chainKey(table, chain), { table, name: chain });
  return [...chains.values()];
}

export function chainOfKey(key: ChainKey): ChainRef {
  const at = key.indexOf(' ');
  return { table: key.slice(0, at) as TableName, name: key.slice(at + 1) }; // as chainKey put them together
}

/** One change of the kernel's rules. `isJump`: the rule is in a kernel chain and leads packets to the agent's chains. */
export type Change =
  /** Creates one of the agent's chains, or empties and rewrites it. */
  | {
      readonly kind: 'chain';
      readonly table: TableName;
      readonly name: string;
      readonly hash: ChainHash;
      readonly lines: number;
      /** Returns them when they are written. */
      readonly rulesOf: RulesOf;
    }
  /** Creates a chain that several owners share; `tail` is all that it holds at first. */
  | { readonly kind: 'list'; readonly table: TableName; readonly name: string; readonly tail: readonly RuleText[] }
  /** Inserts a rule as the first of its chain. */
  | ({ readonly kind: 'insert'; readonly isJump: boolean } & Rule)
  /** Moves an existing rule to the start of its chain. */
  | ({ readonly kind: 'move' } & Rule)
  /** Appends a rule to its chain. */
  | ({ readonly kind: 'append'; readonly isJump: boolean } & Rule)
  /** Deletes the first rule with this text from its chain. */
  | ({ readonly kind: 'delete' } & Rule)
  /** Records the last rules of a chain; writes nothing. */
  | { readonly kind: 'tail'; readonly table: TableName; readonly chain: string; readonly tail: readonly RuleText[] }
  /** Empties and deletes a chain. */
  | { readonly kind: 'remove'; readonly table: TableName; readonly name: string };

interface Rule {
  readonly table: TableName;
  readonly chain: string;
  readonly rule: RuleText;
}

export function chainOf(change: Change): ChainRef {
  return { table: change.table, name: 'name' in change ? change.name : change.chain };
}

/** Writes a chain whole. `rulesOf` returns the rules again when they are written; default: they are kept. */
export function chainChange(
  { table, name, rules }: Chain,
  hash: ChainHash = hashRules(rules),
  rulesOf: RulesOf = () => rules,
): Change {
  return { kind: 'chain', table, name, hash, lines: rules.length, rulesOf };
}
