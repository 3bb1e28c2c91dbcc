import type { ServicePortKey } from '@switchyard/core';
import type { ChainRule, RuleText } from '../../render/chains.ts';
import { type ChainKey, chainKey, type ChainRef, type Change } from './change.ts';
import type { ChangeGroup } from '@switchyard/core/engine';

/** Owner of a rule in a shared chain: a Service port, or all health checks. */
export type EntryOwner = ServicePortKey | 'healthChecks';

export interface OwnedEntry extends ChainRule {
  readonly key: ServicePortKey;
}

/** Owners of rules in shared chains. Two owners may want one text in turn: the later claim wins. */
export class EntryOwners {
  readonly #owners = new Map<ChainKey, Map<RuleText, EntryOwner>>();

  ownerOf({ table, chain, rule }: ChainRule): EntryOwner | undefined {
    return this.#owners.get(chainKey(table, chain))?.get(rule);
  }

  claim(entries: readonly ChainRule[], owner: EntryOwner): void {
    for (const { table, chain, rule } of entries) {
      const key = chainKey(table, chain);
      const owners = this.#owners.get(key);
      if (owners === undefined) this.#owners.set(key, new Map([[rule, owner]]));
      else owners.set(rule, owner);
    }
  }

  /** Releases a rule. A later claim by another owner stays. */
  release({ table, chain, rule }: ChainRule, owner: EntryOwner): void {
    const owners = this.#owners.get(chainKey(table, chain));
    if (owners?.get(rule) === owner) owners.delete(rule);
  }

  /** Whether a rule has another owner than this one. */
  isOfOther(entry: ChainRule, owner: EntryOwner | undefined): boolean {
    const found = this.ownerOf(entry);
    return found !== undefined && found !== owner;
  }
}

/** Changes that are written in one restore. */
export interface Group extends ChangeGroup<Change> {
  /** Owner of the rules that the group claims in shared chains; undefined for a group that claims none. */
  readonly entryOwner?: EntryOwner;
  /** Set when the kernel refuses to remove an unwanted chain: the next plan only unlinks such chains. */
  keepsChains?: boolean;
  /** All chains that the plan depends on: read again when the kernel refuses it. */
  chains(): readonly ChainRef[];
  /** The removals to write in place of this group when the kernel has refused it finally. */
  readonly afterRefusal?: () => Group;
}
