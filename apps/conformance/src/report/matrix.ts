import type { CaseResult, ReportFile } from '../model/report-file.ts';
import { type Column, columnsOf, type RoundResult, resultsById } from './columns.ts';
import { flakesOf } from './flakes.ts';

/** A case in a column, over all rounds. */
export interface MatrixCell {
  readonly column: Column;
  /** Empty: it did not run there. */
  readonly rounds: readonly RoundResult[];
  /** Rounds whose verdict was not the usual one. */
  readonly oddRounds: readonly number[];
}

/** A case in all columns. */
export interface MatrixRow {
  readonly id: string;
  /** Title, reason and tags of the case, from the first column that has it. */
  readonly info: CaseResult;
  /** One per column, in their order. */
  readonly cells: readonly MatrixCell[];
  /** Columns have different observations, independent of the verdicts. */
  readonly differs: boolean;
}

/** Rows that belong together. */
export interface MatrixGroup {
  /** First word of the ids: `scenario`, `matrix`, `sequence`, `rollout`. */
  readonly kind: string;
  /** `nodePort`, `session affinity`; empty: the kind is not divided. */
  readonly feature: string;
  readonly rows: readonly MatrixRow[];
}

/** Cases by proxies: what every page shows. */
export interface Matrix {
  readonly columns: readonly Column[];
  readonly groups: readonly MatrixGroup[];
}

/** The matrix of a report; columns, groups and rows in the order in which they come in it. */
export function matrixOf(report: ReportFile): Matrix {
  const columns = columnsOf(report);
  const results = columns.map((column) => ({ column, byId: resultsById(column) }));
  const odd = new Map(flakesOf(report).cases.map(({ column, id, oddRounds }) => [`${column} ${id}`, oddRounds]));
  const ids = new Set(results.flatMap(({ byId }) => [...byId.keys()]));
  const rows = [...ids].flatMap((id): readonly MatrixRow[] => {
    const cells = results.map(({ column, byId }) => ({
      column,
      rounds: byId.get(id) ?? [],
      oddRounds: odd.get(`${column.key} ${id}`) ?? [],
    }));
    const info = cells.find(({ rounds }) => rounds.length > 0)?.rounds[0]?.result;
    return info === undefined ? [] : [{ id, info, cells, differs: differs(cells) }];
  });
  const groups = Map.groupBy(rows, (row) => JSON.stringify(placeOf(row.info)));
  return { columns, groups: [...groups.values()].map((some) => ({ ...placeOf(some[0]?.info), rows: some })) };
}

/** Features of scenarios by their tags; the first that a case has is its group. */
const features: readonly (readonly [string, string])[] = [
  ['restart', 'restart'],
  ['affinity', 'session affinity'],
  ['source-ranges', 'source ranges'],
  ['topology', 'topology hints'],
  ['health-check', 'health checks'],
  ['hairpin', 'hairpin'],
  ['dual-stack', 'dual stack'],
  ['configuration', 'configuration of the proxy'],
  ['terminating', 'terminating endpoints'],
  ['etp-local', 'externalTrafficPolicy Local'],
  ['itp-local', 'internalTrafficPolicy Local'],
  ['load-balancer', 'load-balancer IP'],
  ['external-ip', 'external IP'],
  ['node-port', 'NodePort'],
];

function placeOf(info: CaseResult | undefined): Pick<MatrixGroup, 'kind' | 'feature'> {
  const [kind = '', second = '', ...rest] = info?.id.split('/') ?? [];
  if (kind === 'scenario') {
    const feature = features.find(([tag]) => info?.tags.includes(tag) === true);
    return { kind, feature: feature?.[1] ?? 'cluster IP and more' };
  }
  return { kind, feature: rest.length > 2 ? second : '' };
}

function differs(cells: readonly MatrixCell[]): boolean {
  // A check that one column could not decide differs from none.
  const undecided = new Set(
    cells.flatMap(({ rounds }) => rounds.flatMap(({ result }) => (result.inconclusive ?? []).map(({ id }) => id))),
  );
  const seen = cells.flatMap(({ rounds }) => {
    const result = rounds.find((round) => ['passed', 'failed'].includes(round.result.status))?.result;
    if (result === undefined) return [];
    return [
      JSON.stringify(
        result.checks
          .filter(({ id }) => !undecided.has(id))
          .map(({ id, expected, observed, isAsExpected }) => [
            id,
            isAsExpected && expected !== observed ? 'within' : observed,
          ]),
      ),
    ];
  });
  return new Set(seen).size > 1;
}

/** Status of a cell: the worst of its rounds, or that they disagree. */
export type CellStatus = 'passed' | 'failed' | 'error' | 'skipped' | 'flaky' | 'none';

/** The status of a cell. `flaky` if its rounds have different verdicts. */
export function cellStatus({ rounds, oddRounds }: MatrixCell): CellStatus {
  if (oddRounds.length > 0) return 'flaky';
  return worstRound(rounds)?.result.status ?? 'none';
}

/** The round to show: the first failed one, else one with an error, a skip, or the first. */
export function worstRound(rounds: readonly RoundResult[]): RoundResult | undefined {
  const worst = (['failed', 'error', 'skipped'] as const).find((status) =>
    rounds.some(({ result }) => result.status === status),
  );
  return rounds.find(({ result }) => result.status === worst) ?? rounds[0];
}

/** Marks of a cell for the filter, one letter each: `p`, `f`, `e`, `s` as they came in any round, `~` for flaky; `-` for none. */
export function cellMarks({ rounds, oddRounds }: MatrixCell): string {
  const statuses = new Set(rounds.map(({ result }) => result.status[0] ?? ''));
  return `${[...statuses].join('')}${oddRounds.length > 0 ? '~' : ''}` || '-';
}

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
