import { readFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { ConfigError, messageOf } from '@switchyard/core';
import { findObstacles, type Obstacles, obstaclesOf } from './obstacles.ts';
import { type ExpandedMatrix, expandMatrix, type Matrix, readMatrix, withImages } from './matrix.ts';
import type { E2eOptions } from './options.ts';
import { ownerNotes, type OwnerNotes } from './owner.ts';
import type { E2eSurroundings } from './program.ts';
import { dryShell, programShell, type Shell } from './run/shell.ts';
import { type Cell, type LabCell, labCells } from './cell.ts';

/** One call of the program: its options and the cells of the matrix. */
export interface Session {
  readonly options: E2eOptions;
  readonly surroundings: E2eSurroundings;
  readonly matrix: Matrix;
  readonly expanded: ExpandedMatrix;
  readonly owners: OwnerNotes;
  /** Shell for programs that belong to no cell; has no log. */
  readonly shell: Shell;
  /** Absolute path of the folder in which each cell has one. */
  readonly results: string;
}

/** Reads the matrix. Throws `ConfigError` with the place of what is wrong in it. */
export async function openSession(options: E2eOptions, surroundings: E2eSurroundings): Promise<Session> {
  const { checkout, cwd, stateFolder, print, runner } = surroundings;
  const file = options.matrix === undefined ? join(checkout, 'e2e/matrix.json') : resolve(cwd, options.matrix);
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new ConfigError('e2e.matrix', `cannot read the matrix ${file}: ${messageOf(error)}`, { cause: error });
  });
  const read = readMatrix(relative(cwd, file), text);
  const expanded = expandMatrix(read);
  const chosen = chosenCells(options, expanded).flatMap((cell) => (cell.kind === 'kind' ? [cell.kubernetes] : []));
  const matrix = { ...read, kubernetes: withImages(read.kubernetes, new Set(chosen), options) };
  const results = options.results === undefined ? join(checkout, 'e2e/.results') : resolve(cwd, options.results);
  const shell = options.isDry ? dryShell(print) : programShell(runner);
  return { options, surroundings, matrix, expanded, owners: ownerNotes(stateFolder), shell, results };
}

/** The chosen cells in the matrix's order, with the reasons why they cannot run here; a dry run checks nothing. */
export async function listedCells(session: Session, signal: AbortSignal): Promise<readonly ListedCell[]> {
  const { options, expanded, matrix, surroundings, shell } = session;
  const chosen = chosenCells(options, expanded);
  if (options.isDry) return chosen.map((cell) => ({ cell, obstacles: [] }));
  const versions = new Set(chosen.map((cell) => (cell.kind === 'kind' ? cell.kubernetes : undefined)));
  const kubernetes = matrix.kubernetes.filter(({ version }) => versions.has(version));
  const { machine } = surroundings;
  const { hasUpstream, kind } = options;
  return listCells(
    chosen,
    await findObstacles(
      { matrix: { ...matrix, kubernetes }, shell, machine, hasUpstream, hasHelm: kind === 'docs' },
      signal,
    ),
  );
}

/** Cells by the command line. Throws `ConfigError` for a name or glob without a cell. */
export function chosenCells(options: Pick<E2eOptions, 'cells'>, expanded: ExpandedMatrix): readonly AnyCell[] {
  const all = allCells(expanded);
  for (const glob of options.cells) {
    if (all.some(({ id }) => isGlobMatch(glob, id))) continue;
    const excluded = expanded.excluded.find(({ cell }) => cell.id === glob);
    const why =
      excluded === undefined ? './dev e2e --list shows all' : `it is left out of the matrix: ${excluded.reason}`;
    throw new ConfigError('e2e.cell', `there is no cell ${glob}; ${why}`);
  }
  return all.filter(({ id }) => options.cells.length === 0 || options.cells.some((glob) => isGlobMatch(glob, id)));
}

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
function listCells(cells: readonly AnyCell[], obstacles: Obstacles): readonly ListedCell[] {
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
