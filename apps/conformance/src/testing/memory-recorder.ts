import type { CaseRecorder } from '../model/test-environment.ts';
import type { CheckResult, InconclusiveCheck, RolloutTimeline, SkippedStep } from '../model/report-file.ts';

/** Keeps what a case records. */
export class MemoryRecorder implements CaseRecorder {
  readonly checks: CheckResult[] = [];
  readonly rollouts: RolloutTimeline[] = [];
  readonly withoutVerdict: InconclusiveCheck[] = [];
  readonly skipped: SkippedStep[] = [];

  check(given: Parameters<CaseRecorder['check']>[0]): void {
    this.checks.push({ ...given, isAsExpected: given.expected === given.observed, path: [] });
  }

  inconclusive(check: InconclusiveCheck): void {
    this.withoutVerdict.push(check);
  }

  skip(step: SkippedStep): void {
    this.skipped.push(step);
  }

  rollout(timeline: RolloutTimeline): void {
    this.rollouts.push(timeline);
  }

  progress(): void {
    // progress is ignored
  }

  /** Ids of what was not as expected. */
  get failed(): readonly string[] {
    return this.checks.filter(({ isAsExpected }) => !isAsExpected).map(({ id }) => id);
  }
}
