import type { RuleText, TableName } from '../chains.ts';
import type { Change } from './change.ts';
import { type ChainHash, hashRules } from './rule-hash.ts';

/** Writes a chain whole. */
export function chainChange(
  table: TableName,
  name: string,
  rules: readonly RuleText[],
  hash: ChainHash = hashRules(rules),
): Change {
  const prefix = `-A ${name} `;
  const body = rules.length === 0 ? '' : `${prefix}${rules.join(`\n${prefix}`)}\n`;
  return { kind: 'chain', table, name, hash, body, lines: rules.length };
}
