import type { ReportFile } from '../model/report-file.ts';
import { columnsOf, countsLine, countsOf, timeCovered } from './columns.ts';
import { durationText, type Painter, painter, indented, plainText, textTable } from './texts.ts';
import { errorGroups, failuresOf, roundsText, failureText, rolloutLine, skipGroups } from './failures.ts';
import type { ErrorGroup, Failure } from './failures.ts';
import { flakeLine, flakesOf } from './flakes.ts';

export interface TextOptions {
  readonly colours: boolean;
  /** Number of failures with all checks; the rest is one line each. */
  readonly detailed: number;
}

/** Number of a group's ids before "and N more". */
const idsNamed = 3;

/** Summary of a run for a terminal: counts, failures, skips by reason, rollouts, flakes, and one line at the end. */
export function textSummary(report: ReportFile, { colours, detailed }: TextOptions): string {
  const paint = painter(colours);
  const parts = [
    countsTable(report),
    failuresPart(report, detailed, paint),
    skipsPart(report, paint),
    rolloutsPart(report, paint),
    flakesPart(report, paint),
    lastLine(report, paint),
  ];
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

function countsTable(report: ReportFile): string {
  const columns = columnsOf(report);
  const hasRounds = columns.some((column) => column.rounds > 1);
  const rows = columns.map(({ proxy, place, runs, rounds: times }) => {
    const { passed, failed, skipped, error } = countsOf(runs);
    const numbers = [passed, failed, skipped, error].map(String);
    const rounds = hasRounds ? [String(times)] : [];
    return [`${plainText(proxy)} ${place}`, ...rounds, ...numbers, durationText(timeCovered(runs))];
  });
  const rounds = hasRounds ? ['rounds'] : [];
  return textTable([['proxy', ...rounds, 'passed', 'failed', 'skipped', 'errors', 'time'], ...rows], { numbers: true });
}

function failuresPart(report: ReportFile, detailed: number, paint: Painter): string {
  const all = failuresOf(report);
  const failures = all.filter(({ kind }) => kind === 'failed');
  const told = failures.slice(0, detailed).map((failure) => {
    const text = failureText(failure.result, failure.checks, paint);
    return `${headOf(failure, paint)}\n${indented(text, 2)}`;
  });
  const rest = failures.slice(detailed).map((failure) => headOf(failure, paint));
  const note = `${rest.length} more, by name only (--html or report --text has all):\n`;
  const errors = errorGroups(all).map((group) => errorText(group, paint));
  return [...told, ...(rest.length === 0 ? [] : [note + rest.join('\n')]), ...errors].join('\n\n');
}

/** Cases that could not be run, and why. */
function errorText({ column, because, failures }: ErrorGroup, paint: Painter): string {
  const ids = failures.map(({ result }) => result.id);
  const count = failures.length === 1 ? '' : `${failures.length} cases: `;
  const head = `${paint.warn('ERROR')} ${paint.strong(count + named(ids))}  ${paint.soft(`${plainText(column.proxy)} ${column.place}`)}`;
  return `${head}\n${indented(paint.warn(plainText(because)), 2)}`;
}

function headOf(failure: Failure, paint: Painter): string {
  const { proxy, place } = failure.column;
  const rounds = roundsText(failure);
  const where = paint.soft(`${plainText(proxy)} ${place}${rounds === '' ? '' : `, ${rounds}`}`);
  return `${paint.bad('FAILED')} ${paint.strong(plainText(failure.result.id))}  ${where}`;
}

function skipsPart(report: ReportFile, paint: Painter): string {
  const lines = skipGroups(report).flatMap(({ reason, count, ids }) => [
    `  ${String(count).padStart(5)}  ${plainText(reason)}`,
    paint.soft(`         ${named(ids)}`),
  ]);
  return lines.length === 0 ? '' : [paint.strong('skipped'), ...lines].join('\n');
}

function named(ids: readonly string[]): string {
  const first = ids.slice(0, idsNamed).map(plainText).join(', ');
  return ids.length > idsNamed ? `${first} and ${ids.length - idsNamed} more` : first;
}

function rolloutsPart(report: ReportFile, paint: Painter): string {
  const rows = columnsOf(report).flatMap(({ proxy, place, runs, rounds }) =>
    runs.flatMap(({ round, cases }) =>
      cases.flatMap(({ id, rollouts }) =>
        rollouts.map((timeline) => [
          `  ${plainText(id)}`,
          `${plainText(proxy)} ${place}${rounds > 1 ? `, round ${round}` : ''}`,
          plainText(rolloutLine(timeline)),
        ]),
      ),
    ),
  );
  return rows.length === 0 ? '' : `${paint.strong('rolling updates')}\n${textTable(rows)}`;
}

function flakesPart(report: ReportFile, paint: Painter): string {
  const flakes = flakesOf(report);
  if (flakes.rounds < 2) return '';
  const lines = flakes.cases.flatMap(({ id, column, verdicts }) => [
    `  ${plainText(id)}  ${paint.soft(column)}`,
    ...[...Map.groupBy(verdicts, ({ verdict }) => verdict)].map(
      ([verdict, rounds]) => `    ${plainText(verdict)} in round ${rounds.map(({ round }) => round).join(', ')}`,
    ),
  ]);
  return [paint.strong(flakeLine(flakes)), ...lines].join('\n');
}

function lastLine(report: ReportFile, paint: Painter): string {
  const line = countsLine(report);
  const { failed, error } = countsOf(report.runs);
  return failed > 0 ? paint.bad(line) : error > 0 ? paint.warn(line) : paint.good(line);
}
