import { isServiceChain, serviceChains } from '@switchyard/netfilter/iptables';
import type { ChainRule, RenderedSettings, RuleText } from '../../render/chains.ts';
import type { Clock, Millis, ServiceForwarding, ServicePortKey } from '@switchyard/core';
import type { ChainRef, Change } from './change.ts';
import type { EntryOwners, Group } from './entry-owners.ts';
import type { KernelState } from './kernel-state.ts';
import { lostEntries } from './plan-entries.ts';

/** Kinds of chains per Service port or endpoint. A chain stands before the chains that it leads to. */
const kinds = ['FW', 'EXT', 'XLB', 'SVL', 'SVC', 'SEP'] as const;
const leadsTo = /-j KUBE-(?:FW|EXT|XLB|SVL|SVC)-([A-Z2-7]{16})\b/;

/** Inputs for finding stale rules, after everything else was planned. */
export interface StaleContext {
  readonly settings: RenderedSettings;
  readonly state: KernelState;
  readonly owners: EntryOwners;
  readonly stale: StaleChains;
  /** Services refused so far: their rules stay. */
  failed(): readonly ServiceForwarding[];
  /** Present and wanted rules of a refused Service; undefined when the wanted ones are unknown. */
  entriesOf(key: ServicePortKey): readonly ChainRule[] | undefined;
}

/** Removes stale and foreign rules, one group each: iptables lists some that it cannot delete. */
export function* removeStaleEntries(context: StaleContext): Generator<Group> {
  const { settings, state } = context;
  for (const { table, name, rules } of settings.shared) {
    // The group of the chain itself corrects its last rules.
    const known = new Set([...(state.list(table, name)?.counts.keys() ?? [])].filter((rule) => !rules.includes(rule)));
    for (const rule of known) {
      const what = `rule "${rule}" from chain ${name} of table ${table}`;
      yield entryRemoval({ chain: { table, name }, what, rules: () => [rule] }, context);
    }
    const others = (): readonly RuleText[] =>
      [...(state.list(table, name)?.counts.keys() ?? [])].filter((rule) => !rules.includes(rule) && !known.has(rule));
    const what = `new rules from chain ${name} of table ${table}`;
    yield entryRemoval({ chain: { table, name }, what, rules: others }, context);
  }
}

interface EntryRemoval {
  readonly chain: ChainRef;
  readonly what: string;
  /** Rules to remove unless an owner wants them. Called after all owners have claimed theirs. */
  rules(): readonly RuleText[];
}

function entryRemoval({ chain, what, rules }: EntryRemoval, { state, owners, failed, entriesOf }: StaleContext): Group {
  const { table, name } = chain;
  const isKept = (rule: RuleText): boolean => {
    const hash = leadsTo.exec(rule)?.[1];
    return (
      hash !== undefined &&
      failed().some(({ key, protocol }) => {
        if (!serviceChains(key, protocol).SVC.endsWith(hash)) return false;
        const wished = entriesOf(key);
        return wished === undefined || lostEntries([{ table, chain: name, rule }], wished).length === 0;
      })
    );
  };
  return {
    owner: { kind: 'stale', what },
    plan: () => {
      const changes: Change[] = [];
      for (const rule of rules()) {
        const count = state.list(table, name)?.counts.get(rule) ?? 0;
        const isWanted = owners.ownerOf({ table, chain: name, rule }) !== undefined;
        if (!isWanted && isKept(rule)) continue;
        for (let left = count - (isWanted ? 1 : 0); left > 0; left--) {
          changes.push({ kind: 'delete', table, chain: name, rule });
        }
      }
      return changes;
    },
    chains: () => [chain],
    settle: () => undefined,
  };
}

/** Removes Service chains that no Service wants. Removes none while a Service is refused: a chain may be its own. */
export function* removeUnwantedChains(context: StaleContext, isWanted: (chain: string) => boolean): Generator<Group> {
  const found = [...context.state.chainsOf('nat').keys()].filter((name) => isServiceChain(name) && !isWanted(name));
  found.sort((a, b) => rankOf(a) - rankOf(b));
  for (const name of found) yield removal(name, context);
}

/** Removes deferred chains that are due; later ones wait for the next period. */
export function* removeDueChains(context: StaleContext): Generator<Group> {
  const groups = [...dueChains(context)];
  yield* groups;
  if (groups.length > 0) context.stale.noteRemoved();
}

/** Removes chains that are due; those that stay are still due. */
export function* dueChains(context: StaleContext): Generator<Group> {
  const due = context.stale.due().toSorted((a, b) => rankOf(a) - rankOf(b));
  for (const name of due) yield removal(name, context);
}

function removal(name: string, { state, stale, failed }: StaleContext): Group {
  const table = 'nat';
  return {
    owner: { kind: 'stale', what: `chain ${name} of table ${table}` },
    plan: () =>
      state.hashOf(table, name) === undefined || failed().length > 0 ? [] : [{ kind: 'remove', table, name }],
    chains: () => [{ table, name }],
    settle: (isApplied) => {
      if (isApplied && state.hashOf(table, name) === undefined) stale.delete(name);
    },
  };
}

function rankOf(name: string): number {
  return kinds.findIndex((kind) => name.startsWith(`KUBE-${kind}-`));
}

/** Unlinked Service chains that wait for removal, at most once per `syncPeriod`, as in kube-proxy. */
export class StaleChains {
  readonly #clock: Clock;
  readonly #period: Millis;
  readonly #names = new Set<string>();
  #removed: Millis | undefined;

  constructor(clock: Clock, period: Millis) {
    this.#clock = clock;
    this.#period = period;
  }

  add(name: string): void {
    this.#names.add(name);
  }

  /** Forgets a chain that is wanted again or was removed. */
  delete(name: string): void {
    this.#names.delete(name);
  }

  /** Chains to remove now: all or none. */
  due(): readonly string[] {
    if (this.#names.size === 0) return [];
    const now = this.#clock.monotonic();
    if (this.#removed !== undefined && now - this.#removed < this.#period) return [];
    return [...this.#names];
  }

  noteRemoved(): void {
    this.#removed = this.#clock.monotonic();
  }
}
