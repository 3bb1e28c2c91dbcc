import { InvariantError, type ServiceForwarding, type ServicePortKey } from '@switchyard/core';
import type { HeldService, ServiceTracker } from '@switchyard/core/engine';
import type { Chain, ChainRule, RenderedService, TableName } from '../../render/chains.ts';
import { chainChange, type ChainRef, chainsOfRules, type Change, entryKey } from './change.ts';
import type { EntryOwners, Group, OwnedEntry } from './entry-owners.ts';
import type { KernelState } from './kernel-state.ts';
import { lostEntries, planEntries } from './plan-entries.ts';
import { hashRules } from './rule-hash.ts';
import type { StaleChains } from './stale-rules.ts';

const table = 'nat' satisfies TableName;

/** Chains and entries of a Service port that are in the kernel, or may be after a refusal. */
export interface HeldChains extends HeldService {
  readonly key: ServicePortKey;
  readonly chains: readonly string[];
  readonly entries: readonly ChainRule[];
  readonly rules: number;
}

/** The surroundings in which Service ports are planned. */
export interface ServicePlanning {
  readonly state: KernelState;
  readonly stale: StaleChains;
  /** Whether unwanted chains are only unlinked and noted as stale, instead of deleted. */
  readonly defersRemoval: boolean;
  /** Called for each chain that a plan wants or removes. */
  note?: (chain: string) => void;
  /** Called again when chains are written; the last answer is remembered. */
  readonly render: (service: ServiceForwarding) => RenderedService;
}

type WantedChains = Pick<HeldChains, 'chains' | 'entries'>;

interface Next {
  readonly next: HeldChains;
}

/** Turns Service ports of one family into changes of chains and entries, and records in the tracker what was written. */
export class ServiceChains {
  readonly #owners: EntryOwners;
  readonly #tracker: ServiceTracker<HeldChains>;
  #rules = 0;

  constructor(owners: EntryOwners, tracker: ServiceTracker<HeldChains>) {
    this.#owners = owners;
    this.#tracker = tracker;
  }

  get rules(): number {
    return this.#rules;
  }

  /** Service port of each of these chains; chains without one are left out. */
  *chainsAmong(names: ReadonlySet<string>): Generator<readonly [key: ServicePortKey, chain: string]> {
    if (names.size === 0) return;
    for (const { key, chains } of this.#tracker.values())
      for (const chain of chains) if (names.has(chain)) yield [key, chain];
  }

  *entries(): Generator<OwnedEntry> {
    for (const { key, entries } of this.#tracker.values()) {
      for (const entry of entries) yield { ...entry, key };
    }
  }

  upsert(service: ServiceForwarding, planning: ServicePlanning): Group {
    const { key } = service;
    let next: HeldChains | undefined;
    const group: Group = {
      ...ownersOf(key),
      plan: () => {
        const rendered = planning.render(service);
        next = ownedOf(service, rendered);
        const defersRemoval = planning.defersRemoval || group.keepsChains === true;
        const changes = this.#plan(service, rendered.chains, { ...planning, defersRemoval, next });
        this.#owners.claim(next.entries, key);
        return changes;
      },
      chains: () => chainsOf(next, this.#tracker.get(key)),
      settle: (isApplied) => {
        if (isApplied && next !== undefined) this.#set(key, next);
        else this.#set(key, joined(key, this.#tracker.get(key), next));
      },
      afterRefusal: () => this.#removeLost(key, next, planning),
    };
    return group;
  }

  /** Entries of a refused Service port, former and wanted ones; undefined when none are known. */
  entriesOf(key: ServicePortKey): readonly ChainRule[] | undefined {
    const entries = this.#tracker.get(key)?.entries;
    return entries?.length === 0 ? undefined : entries;
  }

  /** Removes the entries of a refused Service port on addresses that it has lost: other Services may have them now. */
  #removeLost(key: ServicePortKey, wanted: HeldChains | undefined, { state }: ServicePlanning): Group {
    const had = this.#tracker.get(key);
    const lost = had === undefined || wanted === undefined ? [] : lostEntries(had.entries, wanted.entries);
    return {
      ...ownersOf(key),
      plan: () => planEntries({ wanted: [], had: lost, state }),
      chains: () => chainsOf({ ...nothing, entries: lost }),
      settle: (isApplied) => {
        const now = this.#tracker.get(key);
        if (!isApplied || now === undefined || lost.length === 0) return;
        const gone = new Set(lost.map(entryKey));
        this.#set(key, { ...now, entries: now.entries.filter((entry) => !gone.has(entryKey(entry))) });
      },
    };
  }

  remove(key: ServicePortKey, planning: ServicePlanning): Group {
    const group: Group = {
      ...ownersOf(key),
      plan: () => {
        const had = this.#tracker.get(key);
        const defersRemoval = planning.defersRemoval || group.keepsChains === true;
        return had === undefined ? [] : this.#planGone(had, nothing, { ...planning, defersRemoval });
      },
      chains: () => chainsOf(this.#tracker.get(key)),
      settle: (isApplied) => {
        const had = this.#tracker.get(key);
        if (had !== undefined) this.#set(key, isApplied ? undefined : joined(key, had, undefined));
      },
    };
    return group;
  }

  #plan(service: ServiceForwarding, chains: readonly Chain[], planning: ServicePlanning & Next): readonly Change[] {
    const { state, stale, note, render, next } = planning;
    const rulesOf = (name: string): Chain['rules'] =>
      render(service).chains.find((chain) => chain.name === name)?.rules ?? [];
    const changes: Change[] = [];
    for (const chain of chains) {
      const hash = hashRules(chain.rules);
      if (state.hashOf(table, chain.name) !== hash) changes.push(chainChange(chain, hash, rulesOf));
      stale.delete(chain.name);
      note?.(chain.name);
    }
    return [...changes, ...this.#planGone(this.#tracker.get(service.key) ?? nothing, next, planning)];
  }

  /** The changes to the wanted entries, and removals of chains that are not wanted any more. */
  #planGone(had: WantedChains, next: WantedChains, planning: ServicePlanning): readonly Change[] {
    const { state, stale, defersRemoval, note } = planning;
    const changes = [...planEntries({ wanted: next.entries, had: had.entries, state })];
    if (had.chains.length === 0) return changes;
    const wanted = new Set(next.chains);
    for (const name of had.chains) {
      if (wanted.has(name) || state.hashOf(table, name) === undefined) continue;
      note?.(name);
      if (defersRemoval) stale.add(name);
      else changes.push({ kind: 'remove', table, name });
    }
    return changes;
  }

  #set(key: ServicePortKey, next: HeldChains | undefined): void {
    const before = this.#tracker.get(key);
    this.#rules += (next?.rules ?? 0) - (before?.rules ?? 0);
    this.#tracker.set(key, next);
    if (before === undefined) return;
    const kept = new Set(next?.entries.map(entryKey));
    for (const entry of before.entries) {
      if (!kept.has(entryKey(entry))) this.#owners.release(entry, key);
    }
  }
}

function ownersOf(key: ServicePortKey): Pick<Group, 'owner' | 'entryOwner'> {
  return { owner: { kind: 'services', keys: [key] }, entryOwner: key };
}

const nothing: WantedChains = { chains: [], entries: [] };

function ownedOf(service: ServiceForwarding, { chains, entries }: RenderedService): HeldChains {
  let rules = 0;
  for (const chain of chains) {
    if (chain.table !== table) throw new InvariantError(`chain ${chain.name} of a Service is in table ${chain.table}`);
    rules += chain.rules.length;
  }
  return { key: service.key, service, chains: chains.map(({ name }) => name), entries, rules };
}

/** Chains and entries that may be in the kernel after a refusal: former and wanted ones. */
function joined(key: ServicePortKey, had: HeldChains | undefined, next: HeldChains | undefined): HeldChains {
  return {
    key,
    service: undefined,
    chains: [...new Set([...(had?.chains ?? []), ...(next?.chains ?? [])])],
    entries: [
      ...new Map([had, next].flatMap((of) => of?.entries.map((entry) => [entryKey(entry), entry]) ?? [])).values(),
    ],
    rules: had?.rules ?? 0,
  };
}

function chainsOf(...of: readonly (WantedChains | undefined)[]): readonly ChainRef[] {
  const own = [...new Set(of.flatMap((held) => held?.chains ?? []))];
  const shared = chainsOfRules(of.flatMap((held) => held?.entries ?? []));
  return [...own.map((name): ChainRef => ({ table, name })), ...shared];
}
