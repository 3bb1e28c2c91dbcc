import type { CaseResult, ReportFile } from '../model/report-file.ts';

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
