import { InvariantError, type ServiceForwarding, type ServicePortKey } from '@switchyard/core';
import type { Chain, ChainRule, RenderedService, TableName } from '../chains.ts';
import { chainChange } from './chain-change.ts';
import { type Change, type ChainRef, chainKey, entryKey } from './change.ts';
import { type EntryOwner, type EntryOwners, meaningOf, type OwnedEntry } from './entry-owners.ts';
import type { Group } from './group.ts';
import type { KernelState } from './kernel-state.ts';
import { lostEntries } from './lost-entries.ts';
import { planEntries } from './plan-entries.ts';
import { hashRules } from './rule-hash.ts';
import type { StaleChains } from './stale-chains.ts';

/** Chains of Services are in this table, all of them. */
const table = 'nat' satisfies TableName;

/** What the kernel holds of a Service port, or may hold after a refusal. */
interface OwnedService {
  /** As it was rendered; undefined when something of it was refused. */
  readonly service: ServiceForwarding | undefined;
  readonly chains: readonly string[];
  readonly entries: readonly ChainRule[];
  /** In its chains. */
  readonly rules: number;
}

/** What plans need besides the Service. */
export interface ServicePlanning {
  readonly state: KernelState;
  readonly stale: StaleChains;
  /** Chains that go are only unlinked, and noted as stale. */
  readonly defersRemoval: boolean;
  /** Is told each chain that a plan wants or removes. */
  note?(chain: string): void;
  /** Asked again when chains are written; the last one is remembered. */
  readonly render: (service: ServiceForwarding) => RenderedService;
}

interface Next {
  readonly next: OwnedService;
}

/** What each Service port of one family has in the kernel, by name. */
export class OwnedServices {
  readonly owners: EntryOwners;
  readonly #services = new Map<ServicePortKey, OwnedService>();
  #rules = 0;

  constructor(owners: EntryOwners) {
    this.owners = owners;
  }

  /** Rules in chains of Services. */
  get rules(): number {
    return this.#rules;
  }

  keys(): Iterable<ServicePortKey> {
    return this.#services.keys();
  }

  /** What was wanted last and is in the kernel. */
  applied(key: ServicePortKey): ServiceForwarding | undefined {
    return this.#services.get(key)?.service;
  }

  /** Which of these chains are of Service ports, and of which. */
  *chainsAmong(names: ReadonlySet<string>): Generator<readonly [key: ServicePortKey, chain: string]> {
    if (names.size === 0) return;
    for (const [key, { chains }] of this.#services)
      for (const chain of chains) if (names.has(chain)) yield [key, chain];
  }

  /** All rules in shared chains. */
  *entries(): Generator<OwnedEntry> {
    for (const [key, { entries }] of this.#services) {
      for (const { table, chain, rule } of entries) {
        yield { table, chain, rule, key, meaning: meaningOf(table, chain, rule) };
      }
    }
  }

  /** What brings a Service port up to date. */
  upsert(service: ServiceForwarding, planning: ServicePlanning): Group {
    const { key } = service;
    const owners = ownersOf(key);
    let next: OwnedService | undefined;
    return {
      ...owners,
      plan: (keepsChains) => {
        const rendered = planning.render(service);
        next = ownedOf(service, rendered);
        const defersRemoval = planning.defersRemoval || keepsChains;
        const changes = this.#plan(service, rendered.chains, { ...planning, defersRemoval, next });
        this.owners.claim(next.entries, owners.entryOwner);
        return changes;
      },
      chains: () => chainsOf(next, this.#services.get(key)),
      settle: (isApplied) => {
        if (isApplied && next !== undefined) this.#set(key, next);
        else this.#set(key, joined(this.#services.get(key), next));
      },
      withdrawal: () => this.#withdrawal(key, next, planning),
    };
  }

  /** What a refused Service port had: rules that lead on. Undefined: nothing is known of it, or of what it wants. */
  entriesOf(key: ServicePortKey): readonly ChainRule[] | undefined {
    const entries = this.#services.get(key)?.entries;
    return entries?.length === 0 ? undefined : entries;
  }

  /** What takes from a refused Service port the addresses that it must not answer on any more: others may have them now. */
  #withdrawal(key: ServicePortKey, wanted: OwnedService | undefined, { state }: ServicePlanning): Group {
    const had = this.#services.get(key);
    const lost = had === undefined || wanted === undefined ? [] : lostEntries(had.entries, wanted.entries);
    return {
      ...ownersOf(key),
      plan: () => planEntries({ wanted: [], had: lost, state }),
      chains: () => chainsOf({ ...nothing, entries: lost }),
      settle: (isApplied) => {
        const now = this.#services.get(key);
        if (!isApplied || now === undefined || lost.length === 0) return;
        const gone = new Set(lost.map(entryKey));
        this.#set(key, { ...now, entries: now.entries.filter((entry) => !gone.has(entryKey(entry))) });
      },
    };
  }

  /** What removes a Service port. */
  remove(key: ServicePortKey, planning: ServicePlanning): Group {
    return {
      ...ownersOf(key),
      plan: (keepsChains) => {
        const had = this.#services.get(key);
        const defersRemoval = planning.defersRemoval || keepsChains;
        return had === undefined ? [] : this.#planGone(had, nothing, { ...planning, defersRemoval });
      },
      chains: () => chainsOf(this.#services.get(key), undefined),
      settle: (isApplied) => {
        const had = this.#services.get(key);
        if (had !== undefined) this.#set(key, isApplied ? undefined : joined(had, undefined));
      },
    };
  }

  #plan(service: ServiceForwarding, chains: readonly Chain[], planning: ServicePlanning & Next): readonly Change[] {
    const { state, stale, note, render, next } = planning;
    const source = {
      rulesOf: (name: string) => render(service).chains.find((chain) => chain.name === name)?.rules ?? [],
    };
    const changes: Change[] = [];
    for (const chain of chains) {
      const hash = hashRules(chain.rules);
      if (state.hashOf(table, chain.name) !== hash) changes.push(chainChange(chain, hash, source));
      stale.delete(chain.name);
      note?.(chain.name);
    }
    return [...changes, ...this.#planGone(this.#services.get(service.key) ?? nothing, next, planning)];
  }

  /** What makes the entries right, and removes the chains that are not wanted any more. */
  #planGone(had: OwnedService, next: OwnedService, planning: ServicePlanning): readonly Change[] {
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

  #set(key: ServicePortKey, next: OwnedService | undefined): void {
    const before = this.#services.get(key);
    this.#rules += (next?.rules ?? 0) - (before?.rules ?? 0);
    if (next === undefined) this.#services.delete(key);
    else this.#services.set(key, next);
    if (before === undefined) return;
    const kept = new Set(next?.entries.map(entryKey));
    for (const entry of before.entries) {
      if (!kept.has(entryKey(entry))) this.owners.release(entry, { kind: 'service', key });
    }
  }
}

function ownersOf(key: ServicePortKey): Pick<Group, 'owner'> & { readonly entryOwner: EntryOwner } {
  return { owner: { kind: 'services', keys: [key] }, entryOwner: { kind: 'service', key } };
}

const nothing: OwnedService = { service: undefined, chains: [], entries: [], rules: 0 };

function ownedOf(service: ServiceForwarding, { chains, entries }: RenderedService): OwnedService {
  let rules = 0;
  for (const chain of chains) {
    if (chain.table !== table) throw new InvariantError(`chain ${chain.name} of a Service is in table ${chain.table}`);
    rules += chain.rules.length;
  }
  return { service, chains: chains.map(({ name }) => name), entries, rules };
}

/** What may be there after a refusal: of the old and of the new. */
function joined(had: OwnedService | undefined, next: OwnedService | undefined): OwnedService {
  return {
    service: undefined,
    chains: [...new Set([...(had?.chains ?? []), ...(next?.chains ?? [])])],
    entries: [
      ...new Map([had, next].flatMap((of) => of?.entries.map((entry) => [entryKey(entry), entry]) ?? [])).values(),
    ],
    rules: had?.rules ?? 0,
  };
}

function chainsOf(...of: readonly (OwnedService | undefined)[]): readonly ChainRef[] {
  const refs = new Map<string, ChainRef>();
  for (const owned of of) {
    for (const name of owned?.chains ?? []) refs.set(chainKey(table, name), { table, name });
    for (const entry of owned?.entries ?? []) {
      refs.set(chainKey(entry.table, entry.chain), { table: entry.table, name: entry.chain });
    }
  }
  return [...refs.values()];
}
