import type { FamilyCell } from './case.ts';
import type { CaseResult } from './report-file.ts';

/** Name of a run. Several runs of an invocation may be active side by side. */
export interface RunName {
  readonly proxy: string;
  readonly cell: FamilyCell;
  /** Number of the round, from 1. */
  readonly round: number;
}

/** A planned run with all chosen cases, including those that will be skipped. */
export interface PlannedRun {
  readonly run: RunName;
  readonly caseIds: readonly string[];
}

/** Progress of a run. A lane is a lab or the cluster, which runs one unit at a time. */
export type ProgressEvent =
  /** Before everything else, once. */
  | { readonly kind: 'planned'; readonly runs: readonly PlannedRun[] }
  /** Before the first case. */
  | ({ readonly kind: 'runStarted' } & PlannedRun)
  /** Work of a lane other than cases: `building the lab`, `starting the proxy`. */
  | { readonly kind: 'lane'; readonly lane: string; readonly text: string }
  /** Cases of a batch start together. A case that is skipped only ends. */
  | { readonly kind: 'caseStarted'; readonly run: RunName; readonly lane: string; readonly id: string }
  /** Text that was passed to `CaseRecorder.progress`. */
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
