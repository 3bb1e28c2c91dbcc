import { isEqual } from '@switchyard/core';
import type { Chain, ChainRule, PlacedRule, RenderedSettings, RuleText, TableName } from '../../render/chains.ts';
import { heartbeatRule } from '../heartbeat.ts';
import { chainNames } from '../../render/names.ts';
import { chainChange, type ChainKey, chainKey, chainsOfRules, type Change } from './change.ts';
import type { EntryOwners, Group } from './entry-owners.ts';
import type { KernelState } from './kernel-state.ts';
import { planEntries } from './plan-entries.ts';
import { hashRules } from './rule-hash.ts';

/** Chain with the birthmark. */
const mark = { table: 'mangle', name: chainNames.mark } as const;

/** Chains that are edited rule by rule, with their last rules. */
export function listsOf({ shared, jumps, ensured }: RenderedSettings): ReadonlyMap<ChainKey, readonly RuleText[]> {
  const lists = new Map<ChainKey, readonly RuleText[]>();
  for (const { table, chain } of [...jumps, ...ensured.rules]) lists.set(chainKey(table, chain), []);
  for (const { table, name, rules } of shared) lists.set(chainKey(table, name), rules);
  return lists;
}

/** Rules that are independent of single Services: own chains, last rules of shared chains, jumps, health checks. */
export class AppliedSettings {
  readonly #owners: EntryOwners;
  /** Last rules of shared chains. */
  #tails: ReadonlyMap<ChainKey, readonly RuleText[]> = new Map();
  #healthChecks: readonly ChainRule[] = [];
  #settings: RenderedSettings | undefined;

  constructor(owners: EntryOwners) {
    this.#owners = owners;
  }

  /** Number of these rules in one table of the kernel. */
  rulesOf(table: TableName): number {
    let rules = this.#healthChecks.filter((entry) => entry.table === table).length;
    if (this.#settings === undefined) return rules;
    const { chains, shared, jumps, ensured } = this.#settings;
    for (const chain of [...chains, ...shared]) if (chain.table === table) rules += chain.rules.length;
    for (const jump of [...jumps, ...ensured.rules]) if (jump.table === table) rules++;
    return rules;
  }

  /** All chains, before any Service is written: nothing leads to them on a fresh node. */
  base(settings: RenderedSettings, state: KernelState): Group {
    const { chains, shared, ensured } = settings;
    return {
      owner: { kind: 'settings' },
      plan: () => [
        ...chains.flatMap((chain) => chainIfOther(chain, state)),
        ...shared.flatMap((chain) => this.#tail(chain, state)),
        ...ensured.chains.flatMap(({ table, name }) => listIfMissing(table, name, state)),
        ...(state.hashOf(mark.table, mark.name) === undefined ? [birthmark()] : []),
      ],
      chains: () => [...chains, ...shared, ...ensured.chains, mark].map(({ table, name }) => ({ table, name })),
      settle: (isApplied) => {
        if (!isApplied) return;
        this.#settings = settings;
        this.#tails = new Map(shared.map(({ table, name, rules }) => [chainKey(table, name), rules]));
      },
    };
  }

  /** Rules of the kernel's chains that lead to the agent's. Written last: they activate everything else. */
  jumps(settings: RenderedSettings, state: KernelState): Group {
    const rules = [...settings.jumps, ...settings.ensured.rules];
    return {
      owner: { kind: 'settings' },
      plan: () => rules.flatMap((jump) => jumpIfMissing(jump, state)),
      chains: () => chainsOfRules(rules),
      settle: () => undefined,
    };
  }

  /** Rules that let load balancers reach the health check servers. */
  healthChecks(entries: readonly ChainRule[], state: KernelState): Group {
    const entryOwner = 'healthChecks';
    const wanted = [...new Map(entries.map((entry) => [entry.rule, entry])).values()];
    const before = this.#healthChecks;
    return {
      owner: { kind: 'settings' },
      entryOwner,
      plan: () => {
        const changes = planEntries({ wanted, had: before, state });
        this.#owners.claim(wanted, entryOwner);
        return changes;
      },
      chains: () => chainsOfRules([...wanted, ...before]),
      settle: (isApplied) => {
        const texts = new Set(wanted.map(({ rule }) => rule));
        this.#healthChecks = isApplied ? wanted : [...wanted, ...before.filter(({ rule }) => !texts.has(rule))];
        if (!isApplied) return;
        for (const entry of before) if (!texts.has(entry.rule)) this.#owners.release(entry, entryOwner);
      },
    };
  }

  /** Forgets the last rules: from here on, old ones are stale rules and are removed as such. */
  forgetTails(): void {
    this.#tails = new Map();
  }

  /** Changes that make a shared chain exist and end with its last rules. */
  #tail({ table, name, rules }: Chain, state: KernelState): readonly Change[] {
    const list = state.list(table, name);
    if (list === undefined) return [{ kind: 'list', table, name, tail: rules }];
    if (list.tail !== undefined && isEqual(list.tail, rules)) return [];
    const before = this.#tails.get(chainKey(table, name)) ?? [];
    const old = [...new Set([...before, ...rules])];
    return [
      ...rules.map((rule) => ({ kind: 'append', table, chain: name, rule, isJump: false }) as const),
      { kind: 'tail', table, chain: name, tail: rules },
      // `-D` deletes the first rule with this text: the older one.
      ...old.flatMap((rule) =>
        Array.from(
          { length: state.count(table, name, rule) },
          () => ({ kind: 'delete', table, chain: name, rule }) as const,
        ),
      ),
    ];
  }
}

function chainIfOther(chain: Chain, state: KernelState): readonly Change[] {
  const hash = hashRules(chain.rules);
  return state.hashOf(chain.table, chain.name) === hash ? [] : [chainChange(chain, hash)];
}

function listIfMissing(table: TableName, name: string, state: KernelState): readonly Change[] {
  return state.list(table, name) === undefined ? [{ kind: 'list', table, name, tail: [] }] : [];
}

/** An existing jump keeps its place, as in kube-proxy. */
function jumpIfMissing({ table, chain, rule, place }: PlacedRule, state: KernelState): readonly Change[] {
  const count = state.count(table, chain, rule);
  if (count > 1) return Array.from({ length: count - 1 }, () => ({ kind: 'delete', table, chain, rule }) as const);
  if (count === 1) return [];
  return [{ kind: place === 'first' ? 'insert' : 'append', table, chain, rule, isJump: true }];
}

function birthmark(): Change {
  return chainChange({ ...mark, rules: [heartbeatRule(undefined)] });
}
