import type { IptablesClient } from '../client/iptables-client.ts';
import type { ChainRule, RuleText, TableName } from '../../render/chains.ts';
import { type ChainKey, chainKey, type ChainRef } from './change.ts';
import { UnreadableTableError } from '../client/create-client.ts';
import { builtInChains } from '../our-chains.ts';
import { KernelState, type RuleList } from './kernel-state.ts';
import type { PrintedRules } from './printed-rules.ts';
import { ChainHasher, hashRules } from './rule-hash.ts';

export interface Reading {
  readonly client: IptablesClient;
  readonly printed: PrintedRules;
  /** Chains that are edited rule by rule, with their last rules. For all others only a hash is kept. */
  readonly lists: ReadonlyMap<ChainKey, readonly RuleText[]>;
  /** The agent's rules in the kernel's chains. */
  readonly jumps: readonly ChainRule[];
  /** Whether a chain that is not edited belongs to the agent; other chains are ignored. */
  isOurs(name: string): boolean;
}

/** Reads one table into `state`, which has no record of it. Rules are hashed while reading; only those of edited chains are kept. */
export async function readTable(
  reading: Reading,
  table: TableName,
  state: KernelState,
  signal: AbortSignal,
): Promise<void> {
  const ofTable = [...reading.lists.keys()].filter((key) => key.startsWith(`${table} `));
  const listed = ofTable.map((key): ChainRef => ({ table, name: key.slice(table.length + 1) }));
  for (const { name } of listed)
    if (builtInChains.has(name)) state.setList(table, name, { counts: new Map(), tail: [] });
  try {
    await readWhole(reading, table, state, signal);
  } catch (error) {
    if (!(error instanceof UnreadableTableError)) throw error;
    // Single chains can still be read and written: Service chains are rewritten without reading them.
    await readChains(reading, listed, state, signal);
  }
}

async function readWhole(
  { client, lists, isOurs, printed }: Reading,
  table: TableName,
  state: KernelState,
  signal: AbortSignal,
): Promise<void> {
  const hasher = new ChainHasher();
  const empty = hasher.hash;
  const rulesByChain = new Map<string, RuleText[]>();
  let current: string | undefined;
  const finish = (): void => {
    if (current !== undefined) state.setHash(table, current, printed.hash(table, current, hasher.hash));
  };
  const reader = {
    chain: (name: string): void => {
      if (lists.has(chainKey(table, name))) rulesByChain.set(name, []);
      else if (isOurs(name)) state.setHash(table, name, empty);
    },
    rule: (chain: string, rule: RuleText): void => {
      if (chain !== current) {
        finish();
        hasher.reset();
        current = state.hashOf(table, chain) === undefined ? undefined : chain;
      }
      if (current !== undefined) hasher.add(rule);
      else rulesByChain.get(chain)?.push(printed.rule(table, chain, rule));
    },
  };
  await client.read(table, reader, signal);
  finish();
  for (const [name, rules] of rulesByChain) {
    state.setList(table, name, listOf(rules, lists.get(chainKey(table, name)) ?? []));
  }
}

/** To list one chain, legacy reads the whole table; more than this are read with it. */
const fewChains = 2;

/** Reads single chains again. Returns those that differ from `state`, and updates it. */
export async function readChains(
  reading: Reading,
  chains: Iterable<ChainRef>,
  state: KernelState,
  signal: AbortSignal,
): Promise<readonly ChainRef[]> {
  const { lists, isOurs, client } = reading;
  const ours = [...chains].filter(({ table, name }) => lists.has(chainKey(table, name)) || isOurs(name));
  const found = new KernelState();
  if (client.variant === 'legacy' && ours.length > fewChains) {
    for (const table of new Set(ours.map((chain) => chain.table))) await readTable(reading, table, found, signal);
  } else {
    for (const chain of ours) await listChain(reading, chain, found, signal);
  }
  return ours.filter((chain) => updateState(chain, found, state));
}

async function listChain(
  reading: Reading,
  { table, name }: ChainRef,
  found: KernelState,
  signal: AbortSignal,
): Promise<void> {
  const { client, lists, printed } = reading;
  const listing = await client.list(table, name, signal);
  const rules = listing?.map(({ rule }) => rule);
  const tail = lists.get(chainKey(table, name));
  if (tail === undefined) {
    found.setHash(table, name, rules && printed.hash(table, name, hashRules(rules)));
    return;
  }
  if (rules === undefined && !builtInChains.has(name)) return;
  const words = (rules ?? (await knownJumps(reading, { table, name }, signal))).map((rule) =>
    printed.rule(table, name, rule),
  );
  found.setList(table, name, listOf(words, tail));
}

/** Our rules in a kernel chain that cannot be listed, tested by `-C`; otherwise each look would insert them again. */
async function knownJumps(
  { client, jumps }: Reading,
  { table, name }: ChainRef,
  signal: AbortSignal,
): Promise<readonly RuleText[]> {
  const known: RuleText[] = [];
  for (const { rule } of jumps.filter((jump) => jump.table === table && jump.chain === name)) {
    const asked = await client.restore(`*${table}\n-C ${name} ${rule}\nCOMMIT\n`, signal);
    if (asked.status === 'done') known.push(rule);
  }
  return known;
}

/** Copies one chain into `state`. Returns false when `state` already has it so. */
function updateState({ table, name }: ChainRef, found: KernelState, state: KernelState): boolean {
  const [hash, list] = [found.hashOf(table, name), found.list(table, name)];
  if (hash === state.hashOf(table, name) && isSameList(list, state.list(table, name))) return false;
  state.setHash(table, name, hash);
  state.setList(table, name, list);
  return true;
}

function listOf(rules: readonly RuleText[], tail: readonly RuleText[]): RuleList {
  const counts = new Map<RuleText, number>();
  for (const rule of rules) counts.set(rule, (counts.get(rule) ?? 0) + 1);
  const start = rules.length - tail.length;
  const isLast = start >= 0 && tail.every((rule, at) => rules[start + at] === rule && counts.get(rule) === 1);
  return { counts, tail: isLast ? tail : undefined };
}

function isSameList(a: Readonly<RuleList> | undefined, b: Readonly<RuleList> | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (a.counts.size !== b.counts.size || (a.tail === undefined) !== (b.tail === undefined)) return false;
  return a.counts.entries().every(([rule, count]) => b.counts.get(rule) === count);
}
