import type { ServiceKey } from '../records/keys.ts';

/** What must be rebuilt. */
export interface Dirty {
  /** Services whose object or slices changed. May name Services that do not exist (any more). */
  readonly services: ReadonlySet<ServiceKey>;
  /** Something every Service may depend on changed: our Node's zone or addresses, a ServiceCIDR, the API servers. */
  readonly everything: boolean;
}

/** Nothing must be rebuilt. */
export const nothingDirty: Dirty = { services: new Set(), everything: false };

/** Everything must be rebuilt. */
export const everythingDirty: Dirty = { services: new Set(), everything: true };

/** Whether there is nothing to rebuild. */
export function isNothingDirty(dirty: Dirty): boolean {
  return !dirty.everything && dirty.services.size === 0;
}

/** What must be rebuilt after both; returns one of the two if the other adds nothing. */
export function mergeDirty(a: Dirty, b: Dirty): Dirty {
  if (isNothingDirty(b)) return a;
  if (isNothingDirty(a)) return b;
  return { services: new Set([...a.services, ...b.services]), everything: a.everything || b.everything };
}

/** The `dirty` argument of `buildTable`. */
export function dirtyServices(dirty: Dirty): 'all' | ReadonlySet<ServiceKey> {
  return dirty.everything ? 'all' : dirty.services;
}
