import type { ReportFile } from '../model/report-file.ts';
import { type MatrixCell, matrixOf, worstRound } from './matrix.ts';

/** A check for the page's script: description, expectation, observation (texts of several rounds joined), verdict. */
export interface PageCheck {
  readonly id: string;
  readonly what: number;
  readonly expected: number;
  readonly observed: number;
  readonly ok: 0 | 1;
}

/** A case in a column, for the page's script. */
export interface PageCell {
  readonly status: string;
  /** Index into `strings`; -1: none. */
  readonly because: number;
  /** `3 of 20 rounds` differ; empty with one round. */
  readonly rounds: string;
  readonly duration: number;
  readonly checks: readonly PageCheck[];
}

/** A case, for the page's script. */
export interface PageCase {
  readonly title: string;
  readonly why: string;
  readonly tags: readonly string[];
  /** Cells by column; null: it did not run there. */
  readonly cells: readonly (PageCell | null)[];
}

/** All results but paths and pictures, as the page holds them in JSON: texts are written once, for proxies mostly say the same. */
export interface PageData {
  readonly columns: readonly { readonly key: string; readonly proxy: string; readonly place: string }[];
  readonly strings: readonly string[];
  readonly cases: Readonly<Record<string, PageCase>>;
}

/** The data of a report's page. */
export function pageData(report: ReportFile): PageData {
  const { columns, groups } = matrixOf(report);
  const indexes = new Map<string, number>();
  const indexOf = (text: string): number => {
    const known = indexes.get(text);
    if (known !== undefined) return known;
    indexes.set(text, indexes.size);
    return indexes.size - 1;
  };
  const cases = groups
    .flatMap(({ rows }) => rows)
    .map(({ id, info, cells }): readonly [string, PageCase] => [
      id,
      { title: info.title, why: info.why, tags: info.tags, cells: cells.map((cell) => pageCell(cell, indexOf)) },
    ]);
  return {
    columns: columns.map(({ key, proxy, place }) => ({ key, proxy, place })),
    strings: [...indexes.keys()],
    cases: Object.fromEntries(cases),
  };
}

function pageCell(cell: MatrixCell, indexOf: (text: string) => number): PageCell | null {
  const { rounds, oddRounds } = cell;
  const worst = worstRound(rounds)?.result;
  if (worst === undefined) return null;
  const because = worst.because ?? '';
  return {
    status: worst.status,
    because: because === '' ? -1 : indexOf(because),
    rounds: oddRounds.length === 0 ? '' : `unlike the others in ${oddRounds.length} of ${rounds.length} rounds`,
    duration: Math.round(worst.duration),
    checks: worst.checks.map(({ id, what, expected, observed, isAsExpected }) => ({
      id,
      what: indexOf(what),
      expected: indexOf(expected),
      observed: indexOf(observed),
      ok: isAsExpected ? 1 : 0,
    })),
  };
}
