import type { ClassPool } from './class-pool.ts';
import type { ChangeGroup } from './commit.ts';
import type { Change, ElementId } from './elements.ts';
import { orderChanges } from './order-changes.ts';

/** How the deletes are to be cut. */
export interface LeftoverOptions {
  readonly classes: ClassPool;
  /** Changes per group at most. */
  readonly limit: number;
}

/** Deletes what nobody asks for; several groups where it is much. What points to something goes before it. */
export function* leftoverGroups(
  ids: readonly ElementId[],
  { classes, limit }: LeftoverOptions,
): Generator<ChangeGroup, undefined, unknown> {
  const deletes = ids.map((id): Change => ({ kind: 'delete', id }));
  const ordered = orderChanges([{ changes: deletes }], classes);
  for (let start = 0; start < ordered.length; start += limit) {
    const changes = ordered.slice(start, start + limit);
    yield { owner: { kind: 'leftovers' }, changes, bond: undefined, settle: () => undefined };
  }
  return undefined;
}
