import { isServiceChain } from '@switchyard/host';
import { serviceChain } from '../names.ts';
import type { ChainRule, RenderedSettings, RuleText } from '../chains.ts';
import type { ServiceForwarding, ServicePortKey } from '@switchyard/core';
import type { Change, ChainRef } from './change.ts';
import type { EntryOwners } from './entry-owners.ts';
import type { Group } from './group.ts';
import type { KernelState } from './kernel-state.ts';
import { lostEntries } from './lost-entries.ts';
import type { StaleChains } from './stale-chains.ts';

/** Kinds of chains of one Service port or endpoint; what leads to others stands before those. */
const kinds = ['FW', 'EXT', 'XLB', 'SVL', 'SVC', 'SEP'] as const;
const leadsTo = /-j KUBE-(?:FW|EXT|XLB|SVL|SVC)-([A-Z2-7]{16})\b/;

/** What is known when everything else was planned. */
export interface Leftovers {
  readonly settings: RenderedSettings;
  readonly state: KernelState;
  readonly owners: EntryOwners;
  readonly stale: StaleChains;
  /** Services that were refused so far: what they had stays. */
  failed(): readonly ServiceForwarding[];
  /** Rules of a refused Service, those it wants among them; undefined when it is not known which it wants. */
  entriesOf(key: ServicePortKey): readonly ChainRule[] | undefined;
}

/**
 * Takes rules out of shared chains that nobody asks for: of Services that are gone, and foreign ones. One by one, because there
 * are rules that iptables lists and does not delete, and the others go all the same.
 */
export function* leftoverEntries(leftovers: Leftovers): Generator<Group> {
  const { settings, state } = leftovers;
  for (const { table, name, rules } of settings.shared) {
    // What stands last is set right with the chain itself.
    const known = new Set([...(state.list(table, name)?.counts.keys() ?? [])].filter((rule) => !rules.includes(rule)));
    for (const rule of known) {
      const what = `rule "${rule}" from chain ${name} of table ${table}`;
      yield entryRemoval({ chain: { table, name }, what, rules: () => [rule] }, leftovers);
    }
    const others = (): readonly RuleText[] =>
      [...(state.list(table, name)?.counts.keys() ?? [])].filter((rule) => !rules.includes(rule) && !known.has(rule));
    const what = `new rules from chain ${name} of table ${table}`;
    yield entryRemoval({ chain: { table, name }, what, rules: others }, leftovers);
  }
}

interface EntryRemoval {
  readonly chain: ChainRef;
  readonly what: string;
  /** Those that go if nobody wants them, when all wishes are known. */
  rules(): readonly RuleText[];
}

function entryRemoval({ chain, what, rules }: EntryRemoval, { state, owners, failed, entriesOf }: Leftovers): Group {
  const { table, name } = chain;
  const isKept = (rule: RuleText): boolean => {
    const hash = leadsTo.exec(rule)?.[1];
    return (
      hash !== undefined &&
      failed().some(({ key, protocol }) => {
        if (!serviceChain('SVC', key, protocol).endsWith(hash)) return false;
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

/** Removes chains of Services that nobody asks for: none while Services are refused, as some may be theirs. */
export function* leftoverChains(
  { state, stale, failed }: Leftovers,
  isWanted: (chain: string) => boolean,
): Generator<Group> {
  const found = [...state.chainsOf('nat').keys()].filter((name) => isServiceChain(name) && !isWanted(name));
  found.sort((a, b) => rankOf(a) - rankOf(b));
  for (const name of found) yield removal(name, { state, stale, failed });
}

/** Removes chains that were left standing, when their time has come; the next ones wait for theirs. */
export function* staleChains(leftovers: Pick<Leftovers, 'state' | 'stale' | 'failed'>): Generator<Group> {
  const groups = [...dueChains(leftovers)];
  yield* groups;
  if (groups.length > 0) leftovers.stale.noteRemoved();
}

/** Removes chains whose time has come, and lets it be the time still for those that stay. */
export function* dueChains(leftovers: Pick<Leftovers, 'state' | 'stale' | 'failed'>): Generator<Group> {
  const due = leftovers.stale.due().toSorted((a, b) => rankOf(a) - rankOf(b));
  for (const name of due) yield removal(name, leftovers);
}

function removal(name: string, { state, stale, failed }: Pick<Leftovers, 'state' | 'stale' | 'failed'>): Group {
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
