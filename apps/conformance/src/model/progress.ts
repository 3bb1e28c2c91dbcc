import type { FamilyCell } from './case.ts';
import type { CaseResult } from './report-file.ts';

/** Which of the runs of an invocation; several go on side by side. */
export interface RunName {
  readonly proxy: string;
  readonly cell: FamilyCell;
  /** From 1. */
  readonly round: number;
}

/** A run that is to come, with all cases that were chosen, those that will be skipped too. */
export interface PlannedRun {
  readonly run: RunName;
  readonly caseIds: readonly string[];
}

/** What a run tells while it goes on. A lane is what works on one thing at a time: a lab, or the cluster. */
export type ProgressEvent =
  /** Before everything else, once. */
  | { readonly kind: 'planned'; readonly runs: readonly PlannedRun[] }
  /** Before the first case. */
  | ({ readonly kind: 'runStarted' } & PlannedRun)
  /** What a lane does beside cases: `building the lab`, `starting the proxy`. */
  | { readonly kind: 'lane'; readonly lane: string; readonly text: string }
  /** Cases of a batch start together. A case that is skipped only ends. */
  | { readonly kind: 'caseStarted'; readonly run: RunName; readonly lane: string; readonly id: string }
  /** What `CaseRecorder.progress` was told. */
  | {
      readonly kind: 'caseProgress';
      readonly run: RunName;
      readonly lane: string;
      readonly id: string;
      readonly text: string;
    }
  | { readonly kind: 'caseEnded'; readonly run: RunName; readonly lane: string; readonly result: CaseResult }
  | { readonly kind: 'runEnded'; readonly run: RunName };

/** Takes progress; must not throw. */
export type OnProgress = (event: ProgressEvent) => void;
