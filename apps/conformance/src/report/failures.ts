import { causeText } from '@switchyard/rollout';
import type { CaseResult, CheckResult, ReportFile, PacketPath, RolloutTimeline } from '../model/report-file.ts';
import { type Column, columnsOf, type RoundResult, resultsById } from './columns.ts';
import { type Painter, indented, plainText } from './texts.ts';

/** A case that failed, or could not be run, in a column: told once, however many rounds it did so in. */
export interface Failure {
  readonly kind: 'failed' | 'error';
  readonly column: Column;
  /** Result of the first such round. */
  readonly result: CaseResult;
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

export const pathTitles: Readonly<Record<PacketPath['run'], string>> = {
  table: "path by Switchyard's table",
  packets: 'path in the kernel',
};

/** One failed check with what was expected, seen, why, and the packet's path. */
export function checkText(check: CheckResult, paint: Painter): string {
  const lines = [
    `${paint.strong('check')} ${plainText(check.id)}: ${plainText(check.what)}`,
    `  expected  ${paint.good(plainText(check.expected))}`,
    `  observed  ${paint.bad(plainText(check.observed))}`,
    ...check.because.map((line, index) => `  ${index === 0 ? 'because' : '       '}   ${plainText(line)}`),
    ...check.path.flatMap(({ run, lines: stations }) => [
      `  ${pathTitles[run]}${stations.length === 0 ? ': nothing is known of it' : ''}`,
      ...stations.map((line) => indented(plainText(line), 4)),
    ]),
  ];
  return lines.join('\n');
}

/** A case that failed or could not be run: its title, why it is checked, each failed check. */
export function failureText(result: CaseResult, checks: readonly CheckResult[], paint: Painter): string {
  const lines = [plainText(result.title), paint.soft(`why: ${plainText(result.why)}`)];
  if (result.because !== undefined && result.because !== '') lines.push(paint.warn(plainText(result.because)));
  if (result.status === 'failed' && checks.length === 0) lines.push(paint.bad('it failed without a failed check'));
  return [...lines, ...checks.map((check) => checkText(check, paint))].join('\n');
}

/** Cases, and steps of cases, that were skipped for the same reason. */
export interface SkipGroup {
  readonly reason: string;
  /** Cases by columns; rounds count once. */
  readonly count: number;
  /** Each once, in the order of the run. */
  readonly ids: readonly string[];
}

/**
 * Skips by reason, the most frequent first: of cases, of single steps that the target could not do, and of checks without a verdict,
 * whose reason begins with `inconclusive`.
 */
export function skipGroups(report: ReportFile): readonly SkipGroup[] {
  const skips = columnsOf(report).flatMap((column) =>
    column.runs.flatMap(({ cases }) => cases.flatMap(skipsOf).map((skip) => ({ ...skip, column }))),
  );
  const byReason = Map.groupBy(skips, ({ because = '' }) => (because === '' ? 'without a reason' : because));
  return [...byReason]
    .map(([reason, group]) => ({
      reason,
      count: new Set(group.map(({ column, id }) => `${column.key} ${id}`)).size,
      ids: [...new Set(group.map(({ id }) => id))],
    }))
    .sort((a, b) => b.count - a.count);
}

/** `scenario/etp-local/ipv4, line 23` for a step. */
function skipsOf({ id, status, because, skippedSteps = [], inconclusive = [] }: CaseResult): readonly Skip[] {
  if (status === 'skipped') return [{ id, because }];
  return [
    ...skippedSteps.map((step) => ({ id: `${id}, ${step.id}`, because: step.because })),
    ...inconclusive.map((check) => ({ id: `${id}, ${check.id}`, because: `inconclusive: ${check.because}` })),
  ];
}

interface Skip {
  readonly id: string;
  readonly because: string | undefined;
}

/** `142 of 740 requests lost, 143 predicted: dropped by the node, no other UP 55, ...`. */
export function rolloutLine({ requests, lost, predictedLost, lostByCause }: RolloutTimeline): string {
  const { least, most } = predictedLost;
  const predicted = least === most ? `${least}` : `${least} to ${most}`;
  const causes = Object.entries(lostByCause)
    .filter(([, count]) => count > 0)
    .map(([cause, count]) => `${causeText(cause)} ${count}`);
  const why = causes.length === 0 ? '' : `: ${causes.join(', ')}`;
  return `${lost} of ${requests} requests lost, ${predicted} predicted${why}`;
}
