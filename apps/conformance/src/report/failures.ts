import type { CaseResult, CheckResult, ReportFile } from '../model/report-file.ts';
import { type Column, columnsOf, type RoundResult, resultsById } from './columns.ts';

/** A case that failed, or could not be run, in a column: told once, however many rounds it did so in. */
export interface Failure {
  readonly kind: 'failed' | 'error';
  readonly column: Column;
  /** Result of the first such round. */
  readonly result: CaseResult;
  /** Rounds with this status. */
  readonly rounds: readonly number[];
  /** Rounds in which the case ran. */
  readonly ran: number;
  /** Checks that failed in any of the rounds, each as it was seen first, in the order in which they were seen. */
  readonly checks: readonly CheckResult[];
}

/** All failures and errors, column by column, cases in the order of the run. */
export function failuresOf(report: ReportFile): readonly Failure[] {
  return columnsOf(report).flatMap((column) =>
    [...resultsById(column).values()].flatMap((rounds) =>
      (['failed', 'error'] as const).flatMap((kind) => failureOf(kind, column, rounds)),
    ),
  );
}

function failureOf(kind: Failure['kind'], column: Column, all: readonly RoundResult[]): readonly Failure[] {
  const some = all.filter(({ result }) => result.status === kind);
  const [first] = some;
  if (first === undefined) return [];
  return [
    {
      kind,
      column,
      result: first.result,
      rounds: some.map(({ round }) => round),
      ran: all.length,
      checks: failedChecks(some.map(({ result }) => result)),
    },
  ];
}

/** Cases of a column that could not be run for the same reason: a lab that failed fails many at once. */
export interface ErrorGroup {
  readonly column: Column;
  readonly because: string;
  readonly failures: readonly Failure[];
}

/** The errors among failures, by column and reason. */
export function errorGroups(failures: readonly Failure[]): readonly ErrorGroup[] {
  const errors = failures.filter(({ kind }) => kind === 'error');
  const groups = Map.groupBy(errors, ({ column, result }) => JSON.stringify([column.key, result.because]));
  return [...groups.values()].flatMap((some) => {
    const [first] = some;
    return first === undefined ? [] : [{ column: first.column, because: first.result.because ?? '', failures: some }];
  });
}

/** The checks that were not as expected, each id once. */
export function failedChecks(results: readonly CaseResult[]): readonly CheckResult[] {
  const byId = new Map<string, CheckResult>();
  for (const check of results.flatMap(({ checks }) => checks)) {
    if (!check.isAsExpected && !byId.has(check.id)) byId.set(check.id, check);
  }
  return [...byId.values()];
}

/** `in round 3 of 20`; empty if there was one round. */
export function roundsText({ rounds, ran }: Pick<Failure, 'rounds' | 'ran'>): string {
  if (ran < 2) return '';
  return rounds.length === ran ? `in all ${ran} rounds` : `in round ${rounds.join(', ')} of ${ran}`;
}
