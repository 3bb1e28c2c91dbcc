import { assertNever, InvariantError } from '@switchyard/core';
import type { RuleText, TableName } from '../../render/chains.ts';
import { type Change, type ChainKey, chainKey } from './change.ts';
import type { ChainHash } from './rule-hash.ts';

/** A chain that is edited rule by rule: how often each rule stands in it. */
export interface RuleList {
  readonly counts: Map<RuleText, number>;
  /** What is known to stand last, in this order; undefined when that is not known. */
  tail: readonly RuleText[] | undefined;
}

/**
 * What the kernel holds, as far as it concerns us: of chains that are written whole a hash, of chains that are edited their
 * rules. Follows only what was read, or written with success.
 */
export class KernelState {
  readonly #chains: Readonly<Record<TableName, Map<string, ChainHash>>> = {
    nat: new Map(),
    filter: new Map(),
    mangle: new Map(),
  };
  readonly #lists = new Map<ChainKey, RuleList>();

  /** Undefined for a chain that is not there, or that is edited rule by rule. */
  hashOf(table: TableName, name: string): ChainHash | undefined {
    return this.#chains[table].get(name);
  }

  /** Chains that are written whole. */
  chainsOf(table: TableName): ReadonlyMap<string, ChainHash> {
    return this.#chains[table];
  }

  /** Undefined for a chain that is not there, or that is written whole. */
  list(table: TableName, chain: string): Readonly<RuleList> | undefined {
    return this.#lists.get(chainKey(table, chain));
  }

  /** Chains that are edited rule by rule. */
  lists(): ReadonlyMap<ChainKey, Readonly<RuleList>> {
    return this.#lists;
  }

  /** How often a rule stands in a chain that is edited. */
  count(table: TableName, chain: string, rule: RuleText): number {
    return this.#lists.get(chainKey(table, chain))?.counts.get(rule) ?? 0;
  }

  /** A chain was read; undefined: it is not there. */
  setHash(table: TableName, name: string, hash: ChainHash | undefined): void {
    if (hash === undefined) this.#chains[table].delete(name);
    else this.#chains[table].set(name, hash);
  }

  /** A chain was read; undefined: it is not there. */
  setList(table: TableName, chain: string, list: Readonly<RuleList> | undefined): void {
    if (list === undefined) this.#lists.delete(chainKey(table, chain));
    else this.#lists.set(chainKey(table, chain), list);
  }

  /** A change was written. */
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
    if (list === undefined) throw new InvariantError(`rules of ${table} ${chain} are changed, and it is not known`);
    return list;
  }
}
