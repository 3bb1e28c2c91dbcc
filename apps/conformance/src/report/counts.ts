import { amountText } from './amount-text.ts';
import type { CaseStatus, ReportFile, RunReport } from '../model/report-file.ts';
import { durationText } from './duration-text.ts';

/** Number of cases by status. */
export type Counts = Readonly<Record<CaseStatus, number>>;

/** Counts before any case has ended. */
export function noCounts(): Record<CaseStatus, number> {
  return { passed: 0, failed: 0, skipped: 0, error: 0 };
}

/** The counts of these runs together. */
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
