import { assertNever, InvariantError } from '@switchyard/core';
import type { RuleText, TableName } from '../../render/chains.ts';
import { type Change, type ChainKey, chainKey } from './change.ts';
import type { ChainHash } from './rule-hash.ts';

/** Rules of a chain that is edited rule by rule, with the number of occurrences of each. */
export interface RuleList {
  readonly counts: Map<RuleText, number>;
  /** Last rules in their order; undefined when unknown. */
  tail: readonly RuleText[] | undefined;
}

/** Recorded kernel rules: a hash per chain that is written whole, the rules of each edited chain. */
export class KernelState {
  readonly #chains: Readonly<Record<TableName, Map<string, ChainHash>>> = {
    nat: new Map(),
    filter: new Map(),
    mangle: new Map(),
  };
  readonly #lists = new Map<ChainKey, RuleList>();

  /** Hash of a chain; undefined for a missing chain and for one that is edited rule by rule. */
  hashOf(table: TableName, name: string): ChainHash | undefined {
    return this.#chains[table].get(name);
  }

  /** Chains that are written whole. */
  chainsOf(table: TableName): ReadonlyMap<string, ChainHash> {
    return this.#chains[table];
  }

  /** Rules of an edited chain; undefined for a missing chain and for one that is written whole. */
  list(table: TableName, chain: string): Readonly<RuleList> | undefined {
    return this.#lists.get(chainKey(table, chain));
  }

  lists(): ReadonlyMap<ChainKey, Readonly<RuleList>> {
    return this.#lists;
  }

  /** Number of occurrences of a rule in a chain that is edited. */
  count(table: TableName, chain: string, rule: RuleText): number {
    return this.#lists.get(chainKey(table, chain))?.counts.get(rule) ?? 0;
  }

  /** Records a chain that was read; undefined: it does not exist. */
  setHash(table: TableName, name: string, hash: ChainHash | undefined): void {
    if (hash === undefined) this.#chains[table].delete(name);
    else this.#chains[table].set(name, hash);
  }

  /** Records an edited chain that was read; undefined: it does not exist. */
  setList(table: TableName, chain: string, list: Readonly<RuleList> | undefined): void {
    if (list === undefined) this.#lists.delete(chainKey(table, chain));
    else this.#lists.set(chainKey(table, chain), list);
  }

  note(change: Change): void {
    const { table } = change;
    switch (change.kind) {
      case 'chain':
        this.#chains[table].set(change.name, change.hash);
        return;
      case 'remove':
        this.#chains[table].delete(change.name);
        this.#lists.delete(chainKey(table, change.name));
        return;
      case 'list':
        this.setList(table, change.name, { counts: new Map(), tail: change.tail });
        for (const rule of change.tail) this.#add(table, change.name, rule, 1);
        return;
      case 'insert':
      case 'append':
        this.#add(table, change.chain, change.rule, 1);
        return;
      case 'delete':
        this.#add(table, change.chain, change.rule, -1);
        return;
      case 'tail':
        this.#listOf(table, change.chain).tail = change.tail;
        return;
      case 'move':
        return;
      default:
        assertNever(change);
    }
  }

  #add(table: TableName, chain: string, rule: RuleText, by: number): void {
    const { counts } = this.#listOf(table, chain);
    const count = (counts.get(rule) ?? 0) + by;
    if (count > 0) counts.set(rule, count);
    else counts.delete(rule);
  }

  #listOf(table: TableName, chain: string): RuleList {
    const list = this.#lists.get(chainKey(table, chain));
    if (list === undefined)
      throw new InvariantError(`rules of chain ${chain} in table ${table} are changed before the chain was read`);
    return list;
  }
}
