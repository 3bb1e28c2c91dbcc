import type { Cell } from '../cell.ts';
import { type LabCell, labCells } from '../lab-cell.ts';
import type { ExpandedMatrix } from '../matrix/expand-matrix.ts';
import { type Obstacles, obstaclesOf } from './obstacles.ts';

/** One cell of either sort. */
export type AnyCell = ({ readonly kind: 'kind' } & Cell) | ({ readonly kind: 'lab' } & LabCell);

/** A cell, and why it cannot run here. */
export interface ListedCell {
  readonly cell: AnyCell;
  /** Empty: it can. */
  readonly obstacles: readonly string[];
}

/** All cells: those with kind first. */
export function allCells({ cells }: ExpandedMatrix): readonly AnyCell[] {
  return [
    ...cells.map((cell) => ({ kind: 'kind' as const, ...cell })),
    ...labCells.map((cell) => ({ kind: 'lab' as const, ...cell })),
  ];
}

/** Whether a glob, in which `*` is any text, means this id. */
export function isGlobMatch(glob: string, id: string): boolean {
  const pattern = glob.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll('*', '.*');
  return new RegExp(`^${pattern}$`).test(id);
}

/** Puts cells and obstacles together. */
export function listCells(cells: readonly AnyCell[], obstacles: Obstacles): readonly ListedCell[] {
  return cells.map((cell) => ({
    cell,
    obstacles: cell.kind === 'lab' ? obstacles.lab : obstaclesOf(cell, obstacles),
  }));
}

/** Cells as a table: id, whether it can run, and the numbers of the reasons below; then cells that the matrix leaves out. */
export function listText(listed: readonly ListedCell[], { excluded }: Pick<ExpandedMatrix, 'excluded'>): string {
  const width = Math.max(4, ...listed.map(({ cell }) => cell.id.length));
  const reasons = [...new Set(listed.flatMap(({ obstacles }) => obstacles))];
  const numbers = (obstacles: readonly string[]): string =>
    obstacles.map((text) => `[${reasons.indexOf(text) + 1}]`).join(' ');
  const lines = listed.map(({ cell, obstacles }) =>
    `${cell.id.padEnd(width)}  ${obstacles.length === 0 ? 'yes' : `no        ${numbers(obstacles)}`}`.trimEnd(),
  );
  const notes = reasons.map((text, index) => `[${index + 1}] ${text}`);
  const leftOut = [...new Set(excluded.map(({ reason }) => reason))].map((reason) => {
    const ids = excluded.filter((one) => one.reason === reason).map(({ cell }) => cell.id);
    return `${ids.length} cells are left out of the matrix (${ids[0]}${ids.length > 1 ? ', ...' : ''}): ${reason}`;
  });
  return [[`${'CELL'.padEnd(width)}  RUNNABLE  WHY NOT`, ...lines], notes, leftOut]
    .filter((part) => part.length > 0)
    .map((part) => part.join('\n'))
    .join('\n\n');
}

/** The same as one JSON object, for programs. */
export function listJson(listed: readonly ListedCell[], { excluded }: Pick<ExpandedMatrix, 'excluded'>): string {
  const cells = listed.map(({ cell, obstacles }) => ({ ...cell, runnable: obstacles.length === 0, obstacles }));
  return JSON.stringify({ cells, excluded: excluded.map(({ cell, reason }) => ({ id: cell.id, reason })) }, null, 2);
}
