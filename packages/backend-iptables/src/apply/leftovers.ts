import { serviceChain } from '../names.ts';
import type { ChainRule, RenderedSettings } from '../chains.ts';
import type { ServiceForwarding, ServicePortKey } from '@switchyard/core';
import type { Change } from './change.ts';
import type { EntryOwners } from './entry-owners.ts';
import type { Group } from './group.ts';
import type { KernelState } from './kernel-state.ts';
import { lostEntries } from './lost-entries.ts';
import type { StaleChains } from './stale-chains.ts';

/** Chains of one Service port or endpoint, of any version of kube-proxy; what leads to others stands before those. */
const kinds = ['FW', 'EXT', 'XLB', 'SVL', 'SVC', 'SEP'] as const;
const perService = new RegExp(`^KUBE-(?:${kinds.join('|')})-[A-Z2-7]{16}$`);
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

/** Takes rules out of shared chains that nobody asks for: of Services that are gone, and foreign ones. */
export function* leftoverEntries({ settings, state, owners, failed, entriesOf }: Leftovers): Generator<Group> {
  for (const { table, name, rules } of settings.shared) {
    yield {
      owner: { kind: 'leftovers' },
      plan: () => {
        const changes: Change[] = [];
        const kept = new Map(
          failed().map(({ key, protocol }) => [serviceChain('SVC', key, protocol).slice(-16), entriesOf(key)]),
        );
        for (const [rule, count] of state.list(table, name)?.counts ?? []) {
          if (rules.includes(rule)) continue; // what stands last is set right with the chain itself
          const isWanted = owners.ownerOf({ table, chain: name, rule }) !== undefined;
          const service = leadsTo.exec(rule)?.[1] ?? '';
          const wished = kept.get(service);
          const isLost = wished !== undefined && lostEntries([{ table, chain: name, rule }], wished).length > 0;
          if (!isWanted && !isLost && kept.has(service)) continue;
          for (let left = count - (isWanted ? 1 : 0); left > 0; left--) {
            changes.push({ kind: 'delete', table, chain: name, rule });
          }
        }
        return changes;
      },
      chains: () => [{ table, name }],
      settle: () => undefined,
    };
  }
}

/** Removes chains of Services that nobody asks for: none while Services are refused, as some may be theirs. */
export function* leftoverChains(
  { state, stale, failed }: Leftovers,
  isWanted: (chain: string) => boolean,
): Generator<Group> {
  const found = [...state.chainsOf('nat').keys()].filter((name) => perService.test(name) && !isWanted(name));
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
    owner: { kind: 'leftovers' },
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
