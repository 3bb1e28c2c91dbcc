import type { CheckResult } from '../model/report-file.ts';
import { cellStatus, type CellStatus, type Matrix, type MatrixCell, type MatrixRow } from './matrix.ts';

/** Result of one case in one column for one source class. */
export interface GridMark {
  readonly caseId: string;
  readonly column: string;
  readonly family: string;
  readonly status: CellStatus;
  /** Expectations: `drop`, `forward to 10.244.1.5`; protocols may differ. */
  readonly expected: readonly string[];
}

/** A state of the endpoints under one policy, seen by one source class. */
export interface GridCell {
  readonly policy: string;
  readonly source: string;
  /** Marks by column, then by family. Empty: there is no such case. */
  readonly marks: readonly GridMark[];
}

/** All matrix cases of one kind of frontend. */
export interface PolicyGrid {
  /** `clusterIP`, `nodePort`, ... */
  readonly frontend: string;
  readonly policies: readonly string[];
  readonly sources: readonly string[];
  readonly families: readonly string[];
  readonly rows: readonly { readonly state: string; readonly cells: readonly GridCell[] }[];
}

interface MatrixPlace {
  readonly frontend: string;
  readonly policy: string;
  readonly state: string;
  readonly family: string;
}

/** `matrix/nodePort/Local/ready-remote-only/ipv6` in its parts; undefined for other cases. */
function matrixPlace(id: string): MatrixPlace | undefined {
  const [kind, frontend, policy, state, family, ...rest] = id.split('/');
  if (kind !== 'matrix' || frontend === undefined || policy === undefined || state === undefined) return undefined;
  return { frontend, policy, state, family: [family ?? '', ...rest].join('/') };
}

/** The matrix cases as grids of state by policy by source, one for each kind of frontend. */
export function policyGrids({ groups }: Matrix): readonly PolicyGrid[] {
  const rows = groups
    .flatMap(({ rows: some }) => some)
    .flatMap((row) => {
      const place = matrixPlace(row.id);
      return place === undefined ? [] : [{ row, place }];
    });
  return [...Map.groupBy(rows, ({ place }) => place.frontend)].map(([frontend, some]) => gridOf(frontend, some));
}

interface PlacedRow {
  readonly row: MatrixRow;
  readonly place: MatrixPlace;
}

function gridOf(frontend: string, placed: readonly PlacedRow[]): PolicyGrid {
  const policies = unique(placed.map(({ place }) => place.policy));
  const sources = unique(
    placed.flatMap(({ row }) => row.cells.flatMap((cell) => checksOf(cell).map(({ what }) => sourceOf(what)))),
  );
  const states = Map.groupBy(placed, ({ place }) => place.state);
  const rows = [...states].map(([state, some]) => ({
    state,
    cells: policies.flatMap((policy) => {
      const inPolicy = some.filter(({ place }) => place.policy === policy);
      return sources.map((source) => ({ policy, source, marks: marksOf(inPolicy, source) }));
    }),
  }));
  return { frontend, policies, sources, families: unique(placed.map(({ place }) => place.family)), rows };
}

function marksOf(placed: readonly PlacedRow[], source: string): readonly GridMark[] {
  const columns = placed[0]?.row.cells.length ?? 0;
  return Array.from({ length: columns }, (_, index) => index).flatMap((index) =>
    placed.flatMap(({ row, place }) => {
      const cell = row.cells[index];
      if (cell === undefined) return [];
      const checks = checksOf(cell).filter(({ what }) => sourceOf(what) === source);
      if (checks.length === 0 && cell.rounds.some(({ result }) => result.checks.length > 0)) return [];
      const expected = unique(checks.map((check) => check.expected));
      const mark = { caseId: row.id, column: cell.column.key, family: place.family, expected };
      return [{ ...mark, status: markStatus(cell, checks) }];
    }),
  );
}

/** Status of a mark. If the case ran, only the checks of this source count. */
function markStatus(cell: MatrixCell, checks: readonly CheckResult[]): CellStatus {
  if (checks.length === 0) return cellStatus(cell);
  const verdicts = new Set(checks.map(({ isAsExpected }) => isAsExpected));
  if (!verdicts.has(false)) return 'passed';
  const byId = [...Map.groupBy(checks, ({ id }) => id).values()];
  const isSteady = byId.every((some) => new Set(some.map(({ isAsExpected }) => isAsExpected)).size === 1);
  return isSteady ? 'failed' : 'flaky';
}

function checksOf({ rounds }: MatrixCell): readonly CheckResult[] {
  return rounds.flatMap(({ result }) => result.checks);
}

/** The first word of `outside to 198.51.100.7:80/TCP`. */
function sourceOf(what: string): string {
  return what.split(' ', 1)[0] ?? '';
}

function unique(values: readonly string[]): readonly string[] {
  return [...new Set(values)];
}
