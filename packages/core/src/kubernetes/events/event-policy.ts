import { type Millis, seconds } from '../../base/time.ts';
import type { EventRate } from './event-budget.ts';

/** How much a recorder tells, and what it takes for a repetition. */
export interface EventPolicy {
  /** Whether two events with different notes are different ones. */
  readonly notes: 'ignored' | 'distinct';
  readonly rate: EventRate;
  /** Whether all events share one budget, or every object that events are about has one. */
  readonly budgetPer: 'recorder' | 'subject';
  /** Different events that are remembered; each may wait for the API server. */
  readonly maxSeries: number;
  /** An event that did not repeat for so long is over; the next one is new. */
  readonly seriesEnd: Millis;
}

/** A program on every node, with little to tell: no fleet of them may flood the API server. Series as in kube-proxy. */
export const agentEventPolicy: EventPolicy = {
  notes: 'ignored',
  rate: { burst: 25, refillInterval: seconds(10) },
  budgetPer: 'recorder',
  maxSeries: 200,
  seriesEnd: seconds(360),
};

/** One program that tells of many objects, each for itself: as client-go's recorder, 25 per object and one more in 5 minutes. */
export const controllerEventPolicy: EventPolicy = {
  notes: 'distinct',
  rate: { burst: 25, refillInterval: seconds(300) },
  budgetPer: 'subject',
  maxSeries: 4096,
  seriesEnd: seconds(600),
};
