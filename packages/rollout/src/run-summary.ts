import type { LossCause } from '@switchyard/loss';

/** The event times that the model uses, of the first move, in seconds after the old pod's deletionTimestamp; undefined if it never happened. */
export interface KeyTimes {
  /** The old node's agent had applied the table in which the old pod is terminating. */
  readonly oldNodeSynced: number | undefined;
  /** The old node's health check first answered 503. */
  readonly oldNodeUnhealthy: number | undefined;
  readonly newUp: number | undefined;
  readonly oldDown: number | undefined;
  readonly appEnded: number | undefined;
}

/** Summary of a run. */
export interface RunSummary {
  readonly terminatingFallback: boolean;
  readonly requests: number;
  readonly answered: number;
  readonly lost: number;
  /** First to last lost request, by the time they were sent, in seconds after the deletionTimestamp. */
  readonly lossWindow: { readonly from: number; readonly to: number } | undefined;
  /** Length of the loss window; 0 when nothing was lost. */
  readonly lossWindowSeconds: number;
  /** Loss that the model predicts from the observed event times: the middle of `predicted`. */
  readonly predictedLost: number;
  /** Bounds of the prediction for unknown applies of the proxies; both are equal if the applies were observed. */
  readonly predicted: { readonly least: number; readonly most: number };
  /** Lost requests by cause; causes without one are left out. */
  readonly lostByCause: Readonly<Partial<Record<LossCause, number>>>;
  /** Every lost request with its cause, in order of sending. */
  readonly losses: readonly Loss[];
  readonly firstLoss: FirstLoss | undefined;
  readonly keyTimes: KeyTimes;
}

/** One lost request. */
export interface Loss {
  readonly sequence: number;
  /** Time of sending, in seconds after the deletionTimestamp. */
  readonly at: number;
  readonly outcome: string;
  readonly cause: LossCause;
}

/** Explanation of the first loss. */
export interface FirstLoss extends Loss {
  /** The oracle's explanation of what the node did with it, in order. Empty if no packet reached a node. */
  readonly explanation: readonly string[];
}
