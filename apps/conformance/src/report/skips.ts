import type { CaseResult, ReportFile } from '../model/report-file.ts';
import { columnsOf } from './columns.ts';

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
