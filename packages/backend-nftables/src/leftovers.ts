import type { ElementGroup } from './change-writer.ts';
import type { ClassPool } from './class-pool.ts';
import type { Change, ElementId } from './elements.ts';
import { orderChanges } from './order-changes.ts';

/** How the deletes are divided. */
export interface LeftoverOptions {
  readonly classes: ClassPool;
  /** Changes per group at most. */
  readonly limit: number;
}

/** Deletes stale elements, those that point to others first; in several groups where there are many. */
export function* leftoverGroups(
  ids: readonly ElementId[],
  { classes, limit }: LeftoverOptions,
): Generator<ElementGroup, undefined, unknown> {
  const deletes = ids.map((id): Change => ({ kind: 'delete', id }));
  const ordered = orderChanges([{ changes: deletes }], classes);
  for (let start = 0; start < ordered.length; start += limit) {
    const changes = ordered.slice(start, start + limit);
    yield { owner: { kind: 'stale', what: `${changes.length} stale elements` }, changes, settle: () => undefined };
  }
  return undefined;
}
