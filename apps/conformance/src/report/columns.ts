import type { CaseResult, ReportFile, RunReport, CaseStatus } from '../model/report-file.ts';
import { amountText, durationText } from './texts.ts';

/** One proxy in one cell: all its rounds. A column of every matrix. */
export interface Column {
  /** Stable and unique in a report: `iptables-nft/dual`; with the target behind an at sign where the report has several. */
  readonly key: string;
  readonly proxy: string;
  /** The cell, and the target where it matters: `dual`, `dual, cluster`. */
  readonly place: string;
  /** Runs in order of rounds. */
  readonly runs: readonly RunReport[];
  /** Largest number of runs of any case: runs may have different cases. */
  readonly rounds: number;
}

export function columnsOf(report: ReportFile): readonly Column[] {
  const hasTargets = new Set(report.runs.map(({ target }) => target)).size > 1;
  const runsByKey = Map.groupBy(
    report.runs,
    ({ proxy, cell, target }) => `${proxy.name}/${cell}${hasTargets ? `@${target}` : ''}`,
  );
  return [...runsByKey].map(([key, runs]) => {
    const [first] = runs;
    const place = first === undefined ? '' : `${first.cell}${hasTargets ? `, ${first.target}` : ''}`;
    return {
      key,
      proxy: first?.proxy.name ?? '',
      place,
      runs: [...runs].sort((a, b) => a.round - b.round || a.startedAt.localeCompare(b.startedAt)),
      rounds: Math.max(0, ...[...resultsById({ runs }).values()].map((results) => results.length)),
    };
  });
}

export interface RoundResult {
  readonly round: number;
  readonly result: CaseResult;
}

/** Results of each case in a column, in order of rounds. */
export function resultsById(column: Pick<Column, 'runs'>): ReadonlyMap<string, readonly RoundResult[]> {
  const results = column.runs.flatMap((run) => run.cases.map((result) => ({ round: run.round, result })));
  return Map.groupBy(results, ({ result }) => result.id);
}

export type Counts = Readonly<Record<CaseStatus, number>>;

export function noCounts(): Record<CaseStatus, number> {
  return { passed: 0, failed: 0, skipped: 0, error: 0 };
}

export function countsOf(runs: readonly RunReport[]): Counts {
  const counts = noCounts();
  for (const { status } of runs.flatMap(({ cases }) => cases)) counts[status]++;
  return counts;
}

/** Time in which at least one run was active, in ms: times of runs side by side count once. */
export function timeCovered(runs: readonly RunReport[]): number {
  const spans = runs
    .map(({ startedAt, duration }) => ({ from: Date.parse(startedAt), to: Date.parse(startedAt) + duration }))
    .sort((a, b) => a.from - b.from);
  let covered = 0;
  let end = Number.NEGATIVE_INFINITY;
  for (const { from, to } of spans) {
    covered += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  return covered;
}

/** `812 passed, 2 failed, 10 skipped, 0 errors in 3 min 05 s`. */
export function countsLine({ runs }: ReportFile): string {
  return `${countsText(countsOf(runs))} in ${durationText(timeCovered(runs))}`;
}

/** `812 passed, 2 failed, 10 skipped, 0 errors`. */
export function countsText({ passed, failed, skipped, error }: Counts): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped, ${amountText(error, 'error')}`;
}

/**
 * One report of several. Runs of the same proxy, cell and target in different files are further rounds, numbered on in the order
 * of the files. The version is that of the first.
 */
export function mergeReports(reports: readonly ReportFile[]): ReportFile {
  const runs = reports.reduce<readonly RunReport[]>((merged, report) => [...merged, ...numberedOn(merged, report)], []);
  return { schema: 'switchyard-conformance/2', version: reports[0]?.version ?? '', runs };
}

function numberedOn(merged: readonly RunReport[], report: ReportFile): readonly RunReport[] {
  return report.runs.map((run) => {
    const before = merged.filter((other) => sameColumn(run, other)).map(({ round }) => round);
    return { ...run, round: run.round + Math.max(0, ...before) };
  });
}

function sameColumn(a: RunReport, b: RunReport): boolean {
  return a.proxy.name === b.proxy.name && a.cell === b.cell && a.target === b.target;
}

/** Exit status: 0 all passed or were skipped with a reason, 1 a case failed, 3 a case ended with an error, which says nothing about the proxy. */
export type RunExitStatus = 0 | 1 | 3;

/**
 * The exit status of all runs of a report: a lab or cluster error (3) over a failure (1). A skip without a reason hides
 * something and counts as an error; so does a report without a case.
 */
export function exitStatusOf(report: ReportFile): RunExitStatus {
  const results = report.runs.flatMap((run) => run.cases);
  if (results.length === 0 || results.some(isError)) return 3;
  return results.some(({ status }) => status === 'failed') ? 1 : 0;
}

function isError({ status, because }: CaseResult): boolean {
  return status === 'error' || (status === 'skipped' && (because ?? '') === '');
}
