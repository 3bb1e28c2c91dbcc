import { readFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { ConfigError, messageOf } from '@switchyard/core';
import { allCells, type AnyCell, isGlobMatch, listCells, type ListedCell } from './list/cell-list.ts';
import { findObstacles } from './list/obstacles.ts';
import { type ExpandedMatrix, expandMatrix } from './matrix/expand-matrix.ts';
import type { Matrix } from './matrix/matrix.ts';
import { readMatrix } from './matrix/read-matrix.ts';
import { withImages } from './matrix/with-images.ts';
import type { E2eOptions } from './options.ts';
import { ownerNotes, type OwnerNotes } from './owner.ts';
import type { E2eSurroundings } from './program.ts';
import { dryShell, programShell, type Shell } from './run/shell.ts';

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
