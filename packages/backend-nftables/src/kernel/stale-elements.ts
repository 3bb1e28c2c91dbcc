import type { ElementGroup } from './service-elements.ts';
import type { ClassPool } from './class-pool.ts';
import type { Change, ElementId } from '../render/elements.ts';
import { orderChanges } from './order-changes.ts';

/** Deletes stale elements, those that point to others first, in groups of at most `limit` changes. */
export function* staleElementGroups(
  ids: readonly ElementId[],
  classes: ClassPool,
  limit: number,
): Generator<ElementGroup, undefined, unknown> {
  const deletes = ids.map((id): Change => ({ kind: 'delete', id }));
  const ordered = orderChanges([{ changes: deletes }], classes);
  for (let start = 0; start < ordered.length; start += limit) {
    const changes = ordered.slice(start, start + limit);
    const owner = { kind: 'stale', what: `${changes.length} stale elements` } as const;
    yield { owner, plan: () => changes, settle: () => undefined };
  }
  return undefined;
}
