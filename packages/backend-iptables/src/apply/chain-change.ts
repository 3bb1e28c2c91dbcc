import type { Chain } from '../chains.ts';
import type { Change, ChainSource } from './change.ts';
import { type ChainHash, hashRules } from './rule-hash.ts';

/** Writes a chain whole. `source`: who tells the rules again when they are written; default: they are kept. */
export function chainChange(
  { table, name, rules }: Chain,
  hash: ChainHash = hashRules(rules),
  source: ChainSource = { rulesOf: () => rules },
): Change {
  return { kind: 'chain', table, name, hash, lines: rules.length, source };
}
