import type { ServicePortKey } from '@switchyard/core';
import type { ChainRule, RuleText } from '../../render/chains.ts';
import { type ChainKey, chainKey } from './change.ts';

/** Whose a rule of a shared chain is. */
export type EntryOwner = { readonly kind: 'service'; readonly key: ServicePortKey } | { readonly kind: 'healthChecks' };

/** A rule of a shared chain. */
export interface OwnedEntry extends ChainRule {
  readonly key: ServicePortKey;
}

/**
 * Who wants which rule of the shared chains. Two may want rules of the same text, one after the other, where rules carry no
 * comments: the one who came last has it, and the other must not take it away.
 */
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

  /** Whoever else claimed it keeps it. */
  release({ table, chain, rule }: ChainRule, owner: EntryOwner): void {
    const owners = this.#owners.get(chainKey(table, chain));
    if (owners !== undefined && isSameOwner(owners.get(rule), owner)) owners.delete(rule);
  }

  /** Whether it is somebody's, and not this one's. */
  isOfOther(entry: ChainRule, owner: EntryOwner | undefined): boolean {
    const found = this.ownerOf(entry);
    return found !== undefined && !isSameOwner(found, owner);
  }
}

function isSameOwner(a: EntryOwner | undefined, b: EntryOwner | undefined): boolean {
  if (a === undefined || a.kind !== b?.kind) return false;
  return a.kind !== 'service' || b.kind !== 'service' || a.key === b.key;
}
