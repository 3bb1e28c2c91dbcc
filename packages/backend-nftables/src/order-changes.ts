import type { ClassPool } from './class-pool.ts';
import type { Change, ElementId } from './elements.ts';
import { handleClass } from './handles.ts';
import { elementObjects, setMapOf } from './names.ts';

const objectCount = elementObjects.length;
/** Stage 0 makes classes; then per object first what is deleted to be added again, then what is added. */
const addStage = (rank: number): number => 2 + rank * 2;
const replaceStage = (rank: number): number => 1 + rank * 2;
const settingsStage = 1 + objectCount * 2;
const deleteStage = (rank: number): number => settingsStage + objectCount - rank;
const stageCount = settingsStage + objectCount + 1;

const ranks: ReadonlyMap<string, number> = new Map(
  elementObjects.flatMap((object, rank) => [[`${object}4`, rank] as const, [`${object}6`, rank] as const]),
);
const handleRanks: ReadonlySet<number> = new Set(
  elementObjects.flatMap((object, rank) => (Object.values<string>(setMapOf).includes(object) ? [rank] : [])),
);

/** Allowed sources that overlap cannot be there together, so old ones go before new ones come. */
const rangeRank = elementObjects.indexOf('fw-allow');

/**
 * The one place that knows the order of writes. What is pointed to is added before what points to it
 * (classes, endpoints, sets, then frontends, then the cluster IPs that make unknown ports an error) and deleted
 * after it. A changed value is a delete and an add of one key. Within one transaction the kernel shows all
 * or nothing; the order counts where a large load is split.
 *
 * Adds the changes that make the classes which are needed and not there yet, once each. An element that
 * neighbours ask for is written once.
 */
export function orderChanges(
  groups: readonly { readonly changes: readonly Change[] }[],
  classes: ClassPool,
): readonly Change[] {
  const lists = groups.map(({ changes }) => changes);
  const deleted = deletedIds(lists);
  const replaced = deleted === undefined ? undefined : replacedIds(lists, deleted);
  const stages: Change[][] = Array.from({ length: stageCount }, () => []);
  const needed = new Set<number>();
  for (const list of lists) {
    for (const change of list) {
      if (change.kind === 'class') needed.add(change.handleClass);
      else if (change.kind === 'replace') stages[settingsStage]?.push(change);
      else {
        const rank = rankOf(change.id);
        if (change.kind === 'delete') {
          stages[
            rank === rangeRank || replaced?.has(change.id) === true ? replaceStage(rank) : deleteStage(rank)
          ]?.push(change);
          continue;
        }
        if (handleRanks.has(rank)) needed.add(handleClass(Number(change.data)));
        pushOnce(stages[addStage(rank)] ?? [], change);
      }
    }
  }
  for (const needs of needed) {
    const change = classes.missing(needs);
    if (change !== undefined) stages[0]?.push(change);
  }
  return stages.flat();
}

/** Ports of one Service come one after the other and ask for the same cluster IP. */
function pushOnce(stage: Change[], change: Extract<Change, { kind: 'add' }>): void {
  const last = stage.at(-1);
  if (last?.kind !== 'add' || last.id !== change.id) stage.push(change);
}

function deletedIds(lists: readonly (readonly Change[])[]): Set<ElementId> | undefined {
  let ids: Set<ElementId> | undefined;
  for (const list of lists) {
    for (const change of list) if (change.kind === 'delete') (ids ??= new Set()).add(change.id);
  }
  return ids;
}

function replacedIds(lists: readonly (readonly Change[])[], deleted: ReadonlySet<ElementId>): Set<ElementId> {
  const ids = new Set<ElementId>();
  for (const list of lists) {
    for (const change of list) if (change.kind === 'add' && deleted.has(change.id)) ids.add(change.id);
  }
  return ids;
}

function rankOf(id: ElementId): number {
  return ranks.get(id.slice(0, id.indexOf(' '))) ?? objectCount - 1;
}
