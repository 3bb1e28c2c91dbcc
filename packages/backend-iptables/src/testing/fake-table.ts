import type { FakeRule } from './rule-types.ts';

/** Tables and the kernel's chains in them, in the order in which iptables prints both. */
export const builtInChains: Readonly<Record<string, readonly string[]>> = {
  mangle: ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'],
  raw: ['PREROUTING', 'OUTPUT'],
  filter: ['INPUT', 'FORWARD', 'OUTPUT'],
  nat: ['PREROUTING', 'INPUT', 'OUTPUT', 'POSTROUTING'],
  security: ['INPUT', 'FORWARD', 'OUTPUT'],
};

/** A rule in its chain, with what it counted. */
export interface FakeEntry {
  readonly rule: FakeRule;
  packets: number;
  bytes: number;
}

/** One chain. */
export interface FakeChain {
  /** Undefined for a user-defined chain. */
  policy: 'ACCEPT' | 'DROP' | undefined;
  entries: FakeEntry[];
}

/** One table of one family and variant. What happens between `begin` and `commit` can be taken back as a whole. */
export class FakeTable {
  readonly name: string;
  readonly chains: Map<string, FakeChain> = new Map();
  /** How many rules lead to a chain. */
  readonly #references = new Map<string, number>();
  /** Chains as they were at `begin`, of those that were touched since. */
  #journal = new Map<string, FakeChain | undefined>();

  constructor(name: string) {
    this.name = name;
    for (const chain of builtInChains[name] ?? []) this.chains.set(chain, { policy: 'ACCEPT', entries: [] });
  }

  /** Nothing but the kernel's chains, and no rule in them. */
  get isEmpty(): boolean {
    return [...this.chains.values()].every(({ policy, entries }) => policy === 'ACCEPT' && entries.length === 0);
  }

  begin(): void {
    this.#journal = new Map();
  }

  rollback(): void {
    for (const [name, before] of this.#journal) {
      for (const { rule } of this.chains.get(name)?.entries ?? []) this.#refer(rule, -1);
      if (before === undefined) this.chains.delete(name);
      else this.chains.set(name, before);
      for (const { rule } of before?.entries ?? []) this.#refer(rule, 1);
    }
    this.begin();
  }

  /** A chain that may be changed; undefined when there is none. */
  edit(name: string): FakeChain | undefined {
    const chain = this.chains.get(name);
    if (chain === undefined || this.#journal.has(name)) return chain;
    this.#journal.set(name, chain);
    const copy = { policy: chain.policy, entries: [...chain.entries] };
    this.chains.set(name, copy);
    return copy;
  }

  make(name: string): void {
    if (!this.#journal.has(name)) this.#journal.set(name, undefined);
    this.chains.set(name, { policy: undefined, entries: [] });
  }

  remove(name: string): void {
    this.flush(name);
    this.chains.delete(name);
  }

  flush(name: string): void {
    const chain = this.edit(name);
    if (chain === undefined) return;
    for (const { rule } of chain.entries) this.#refer(rule, -1);
    chain.entries = [];
  }

  insert(name: string, index: number, entry: FakeEntry): void {
    this.edit(name)?.entries.splice(index, 0, entry);
    this.#refer(entry.rule, 1);
  }

  delete(name: string, index: number): void {
    const [gone] = this.edit(name)?.entries.splice(index, 1) ?? [];
    if (gone !== undefined) this.#refer(gone.rule, -1);
  }

  isReferenced(name: string): boolean {
    return (this.#references.get(name) ?? 0) > 0;
  }

  #refer({ target }: FakeRule, by: number): void {
    if (target?.kind !== 'chain') return;
    this.#references.set(target.chain, (this.#references.get(target.chain) ?? 0) + by);
  }
}

/** The table as `iptables-save` prints it, from `*name` to `COMMIT`. */
export function* saveLines(table: FakeTable, withCounters: boolean): Generator<string> {
  const names = printOrder(table);
  yield `*${table.name}`;
  for (const name of names) yield `:${name} ${table.chains.get(name)?.policy ?? '-'} [0:0]`;
  for (const name of names) {
    for (const { rule, packets, bytes } of table.chains.get(name)?.entries ?? []) {
      const counters = withCounters ? `[${packets}:${bytes}] ` : '';
      yield `${counters}-A ${name}${rule.text === '' ? '' : ` ${rule.text}`}`;
    }
  }
  yield 'COMMIT';
}

/** The lines of `-S`, of all chains or of one. */
export function* listLines(table: FakeTable, only: string | undefined, withCounters: boolean): Generator<string> {
  const names = only === undefined ? printOrder(table) : [only];
  for (const name of names) {
    const policy = table.chains.get(name)?.policy;
    yield policy === undefined ? `-N ${name}` : `-P ${name} ${policy}${withCounters ? ' -c 0 0' : ''}`;
  }
  for (const name of names) {
    for (const entry of table.chains.get(name)?.entries ?? []) yield listLine(name, entry, withCounters);
  }
}

/** Counters stand before the target. */
function listLine(chain: string, { rule, packets, bytes }: FakeEntry, withCounters: boolean): string {
  const words = rule.text === '' ? [] : [rule.text];
  if (!withCounters) return ['-A', chain, ...words].join(' ');
  const counters = `-c ${packets} ${bytes}`;
  const target = rule.target === undefined ? -1 : rule.text.search(/(?:^| )-[jg] [^"]*$/);
  if (target < 0) return ['-A', chain, ...words, counters].join(' ');
  const [matches, rest] = [rule.text.slice(0, target), rule.text.slice(target).trimStart()];
  return ['-A', chain, ...(matches === '' ? [] : [matches]), counters, rest].join(' ');
}

/** The kernel's chains as they are passed, then the others by name. */
function printOrder(table: FakeTable): readonly string[] {
  const builtIn = (builtInChains[table.name] ?? []).filter((name) => table.chains.has(name));
  const own = [...table.chains].filter(([, { policy }]) => policy === undefined).map(([name]) => name);
  return [...builtIn, ...own.sort((a, b) => (a < b ? -1 : 1))];
}
