import type { ClassPool } from './class-pool.ts';
import type { Change, ElementId } from '../render/elements.ts';
import { handleClass } from '../render/elements.ts';
import { elementObjects, setMapOf } from '../render/names.ts';

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
/** Where what is added leads to a class. */
const handleStages: ReadonlySet<number> = new Set(
  elementObjects.flatMap((object, rank) => (Object.values<string>(setMapOf).includes(object) ? [addStage(rank)] : [])),
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
  const stages: (Change[] | undefined)[] = Array.from({ length: stageCount });
  const needed = new Set<number>();
  for (const list of lists) {
    for (const change of list) {
      const at = stageOf(change, replaced);
      if (change.kind === 'class') needed.add(change.handleClass);
      else if (stages[at] === undefined) stages[at] = [change];
      else if (!isDouble(stages[at], change)) stages[at].push(change);
      if (change.kind === 'add' && handleStages.has(at)) needed.add(handleClass(Number(change.data)));
    }
  }
  stages[0] = [...needed].flatMap((handle) => classes.missing(handle) ?? []);
  return stages.flatMap((stage) => stage ?? []);
}

function stageOf(change: Change, replaced: ReadonlySet<ElementId> | undefined): number {
  if (change.kind === 'class') return 0;
  if (change.kind === 'replace') return settingsStage;
  const rank = rankOf(change.id);
  if (change.kind === 'add') return addStage(rank);
  return rank === rangeRank || replaced?.has(change.id) === true ? replaceStage(rank) : deleteStage(rank);
}

/** Ports of one Service come one after the other and ask for the same cluster IP. */
function isDouble(stage: readonly Change[], change: Change): boolean {
  const last = stage.at(-1);
  return change.kind === 'add' && last?.kind === 'add' && last.id === change.id;
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
