import type { ReportedRun } from './report/report-html.ts';
import type { RunSummary } from './run-summary.ts';

/** What `--json` writes. */
export interface JsonResult {
  readonly runs: readonly (RunSummary & {
    readonly settings: ReportedRun['run']['settings'];
    /** Everything observed, times in wall-clock milliseconds. */
    readonly record: ReportedRun['run'];
  })[];
}

/** The result as data: each run's summary first, then what it was made from. */
export function jsonResult(runs: readonly ReportedRun[]): JsonResult {
  return { runs: runs.map(({ run, summary }) => ({ ...summary, settings: run.settings, record: run })) };
}
