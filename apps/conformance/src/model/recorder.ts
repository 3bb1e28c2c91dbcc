import type { Scenario, ScenarioFlow } from '@switchyard/scenarios';
import type { CheckResult, InconclusiveCheck, RolloutTimeline } from './report-file.ts';

/** A flow with its scenario, so that a failure can be explained by the table and followed through the kernel. */
export interface FlowAt {
  readonly scenario: Scenario;
  readonly flow: ScenarioFlow;
}

/** Records the results of a case, in order. */
export interface CaseRecorder {
  /** The verdict is `expected === observed`, unless `isAsExpected` is given (limits: "under 0.61 s"). */
  check(check: Omit<CheckResult, 'isAsExpected' | 'path'> & { readonly isAsExpected?: boolean }, at?: FlowAt): void;
  /** Records a check without a verdict, with the reason. It counts neither as passed nor as failed. */
  inconclusive(check: InconclusiveCheck): void;
  /** A rolling update's picture and figures. */
  rollout(timeline: RolloutTimeline): void;
  /** One line of live progress. */
  progress(text: string): void;
}
