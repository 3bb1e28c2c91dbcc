import type { ServiceKey, ServicePortKey } from '@switchyard/core';
import { type Change, type ElementId, isElementChange, isShared } from './elements.ts';
import type { PlacedService } from './place-service.ts';
import type { SharedClaims } from './shared-claims.ts';

/** What is to become of one service, before it is known what that means for elements it shares. */
export interface Draft {
  readonly key: ServicePortKey;
  readonly service: ServiceKey;
  readonly id: number;
  /** Undefined: the service goes. */
  readonly after: PlacedService | undefined;
  /** As if nobody else asked for any of these elements. */
  readonly changes: readonly Change[];
}

/**
 * Drafts that touch the same element belong together when one of them lets go of it: a frontend that moves to
 * another service, the last ports with one cluster IP. Apart, the order in which the kernel takes or refuses
 * them would decide what is left. Drafts that only add the same element stay apart.
 */
export function joinDrafts(drafts: readonly Draft[]): readonly (readonly Draft[])[] {
  if (drafts.length < 2) return drafts.length === 0 ? [] : [drafts];
  const letGo = new Map<ElementId, number>();
  const roots = drafts.map((_, index) => index);
  const rootOf = (index: number): number => {
    let root = index;
    while (roots[root] !== root) root = roots[root] ?? root;
    roots[index] = root;
    return root;
  };
  const join = (a: number, b: number): void => {
    const [first, second] = [rootOf(a), rootOf(b)];
    roots[Math.max(first, second)] = Math.min(first, second);
  };
  drafts.forEach(({ changes }, index) => {
    for (const change of changes) {
      if (change.kind !== 'delete') continue;
      const other = letGo.get(change.id);
      if (other === undefined) letGo.set(change.id, index);
      else join(other, index);
    }
  });
  if (letGo.size > 0) {
    drafts.forEach(({ changes }, index) => {
      for (const change of changes) {
        const other = change.kind === 'add' ? letGo.get(change.id) : undefined;
        if (other !== undefined) join(other, index);
      }
    });
  }
  const joined = Map.groupBy(drafts.keys(), rootOf);
  return [...joined.values()].map((indexes) => indexes.flatMap((index) => drafts[index] ?? []));
}

/** The changes of joined drafts, and by how much the claims on shared elements change with them. */
export interface SettledChanges {
  readonly changes: readonly Change[];
  readonly claims: ReadonlyMap<ElementId, number>;
}

const noClaims: ReadonlyMap<ElementId, number> = new Map();

/** Leaves out what others still ask for and what is there already; everything else is written as drafted. */
export function settleShared(drafts: readonly Draft[], claims: SharedClaims): SettledChanges {
  const all = drafts.length === 1 ? (drafts[0]?.changes ?? []) : drafts.flatMap(({ changes }) => changes);
  if (!all.some((change) => isElementChange(change) && isShared(change.id))) return { changes: all, claims: noClaims };
  const changes: Change[] = [];
  const net = new Map<ElementId, number>();
  for (const change of all) {
    if (!isElementChange(change) || !isShared(change.id)) changes.push(change);
    else net.set(change.id, (net.get(change.id) ?? 0) + (change.kind === 'add' ? 1 : -1));
  }
  for (const [id, by] of net) {
    const count = claims.count(id);
    if (count === 0 && by > 0) changes.push({ kind: 'add', id, data: '' });
    else if (count > 0 && count + by === 0) changes.push({ kind: 'delete', id });
  }
  return { changes, claims: net };
}
