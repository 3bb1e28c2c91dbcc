import type { Millis } from '@switchyard/core';
import { earlier, later } from './steps.ts';

/**
 * The moments that decide what a rolling update of an `externalTrafficPolicy: Local` Service loses behind a
 * health-checking load balancer with two nodes. All on one clock; its zero does not matter. `undefined`: did not
 * happen while it was watched.
 */
export interface RolloutTimes {
  readonly terminatingFallback: boolean;
  /** The old node's dataplane knew that its only endpoint is terminating. */
  readonly oldNodeSynced: Millis | undefined;
  /** The old app stopped accepting connections. */
  readonly appEnded: Millis | undefined;
  /** The load balancer began to use the new node. */
  readonly newUp: Millis | undefined;
  /** The load balancer stopped using the old node. */
  readonly oldDown: Millis | undefined;
  /** End of the observation, used as the time of events that did not happen. */
  readonly until: Millis;
}

/** Cause of a lost request. `Alone`: the old node was the only one UP; `Shared`: half of the traffic went there. */
export type LossCause = 'droppedByNodeAlone' | 'droppedByNodeShared' | 'appGone' | 'noServerUp' | 'unexplained';

/** Time at which the old node stopped answering, and the cause. */
export interface Blackout {
  /** `undefined`: it never stopped. */
  readonly at: Millis | undefined;
  readonly by: 'node' | 'app';
}

/** Prediction of the model, in requests, not rounded. */
export interface LossPrediction {
  readonly lost: number;
  /** Lost while the load balancer had only the old node UP: all of them. */
  readonly alone: number;
  /** Lost while it had both UP: every second one. */
  readonly shared: number;
  /** Lost while it had no node UP: all requests, closed at once. */
  readonly noneUp: number;
  /** Lost requests by cause; causes without a loss are left out. */
  readonly byCause: Readonly<Partial<Record<ExplainedCause, number>>>;
}

/** A cause that the model knows. */
export type ExplainedCause = Exclude<LossCause, 'unexplained'>;

/** A stretch of time in which requests are lost, for one cause. */
export interface LossPhase {
  readonly kind: 'alone' | 'shared' | 'noneUp';
  readonly cause: ExplainedCause;
  readonly from: Millis;
  /** Later than `from`. */
  readonly to: Millis;
  /** Lost share of the phase's requests, 0 to 1. */
  readonly share: number;
}

/**
 * Without the fallback (Kubernetes <= 1.25) the node drops as soon as it knows that its endpoint is terminating;
 * with it (KEP-1669) the node forwards for as long as the app answers.
 */
export function blackoutOf(times: RolloutTimes): Blackout {
  const { appEnded, oldNodeSynced } = times;
  if (times.terminatingFallback || oldNodeSynced === undefined) return { at: appEnded, by: 'app' };
  if (appEnded !== undefined && appEnded < oldNodeSynced) return { at: appEnded, by: 'app' };
  return { at: oldNodeSynced, by: 'node' };
}

/**
 * When requests are lost, from three event times, in order of time and never overlapping:
 * alone = [blackout, first of newUp and oldDown], shared = [later of newUp and blackout, oldDown] by half,
 * noneUp = [oldDown, newUp]. Phases that do not happen are left out.
 */
export function lossPhases(times: RolloutTimes): readonly LossPhase[] {
  const { at: blackAt, by } = blackoutOf(times);
  const newUp = times.newUp ?? times.until;
  const oldDown = times.oldDown ?? times.until;
  const noneUp: LossPhase = { kind: 'noneUp', cause: 'noServerUp', from: oldDown, to: newUp, share: 1 };
  const isPresent = ({ from, to }: LossPhase): boolean => to > from;
  if (blackAt === undefined) return [noneUp].filter(isPresent);
  const causes =
    by === 'app'
      ? ({ alone: 'appGone', shared: 'appGone' } as const)
      : ({ alone: 'droppedByNodeAlone', shared: 'droppedByNodeShared' } as const);
  const phases: readonly LossPhase[] = [
    { kind: 'alone', cause: causes.alone, from: blackAt, to: earlier(newUp, oldDown), share: 1 },
    { kind: 'shared', cause: causes.shared, from: later(newUp, blackAt), to: oldDown, share: 0.5 },
    noneUp,
  ];
  return phases.filter(isPresent);
}

/** Requests lost at `rate` per second. Within 3 requests of 76 measured rollouts of the real kube-proxy at 20/s. */
export function predictLoss(times: RolloutTimes, rate: number): LossPrediction {
  const lostIn = { alone: 0, shared: 0, noneUp: 0 };
  const byCause: Partial<Record<ExplainedCause, number>> = {};
  for (const { kind, cause, from, to, share } of lossPhases(times)) {
    const lost = (rate * (to - from) * share) / 1000;
    lostIn[kind] += lost;
    byCause[cause] = (byCause[cause] ?? 0) + lost;
  }
  return { lost: lostIn.alone + lostIn.shared + lostIn.noneUp, ...lostIn, byCause };
}

/**
 * The cause of a request that was sent at `sentAt` and lost: that of the phase it falls into, else of the nearest one
 * no further than `slack` away. Event times are observed a little before or after the packets that they explain.
 */
export function causeOfLoss(sentAt: Millis, times: RolloutTimes, slack: Millis): LossCause {
  let nearest: LossCause = 'unexplained';
  let distance: number = slack;
  for (const { cause, from, to } of lossPhases(times)) {
    const away = Math.max(from - sentAt, sentAt - to, 0);
    if (away > distance || (away === distance && nearest !== 'unexplained')) continue;
    nearest = cause;
    distance = away;
  }
  return nearest;
}
