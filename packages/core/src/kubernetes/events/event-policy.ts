import { type Millis, seconds } from '../../base/time.ts';
import type { EventRate } from './event-budget.ts';

/** Rate limits of a recorder, and its definition of a repetition. */
export interface EventPolicy {
  /** Whether events with different notes are different events. */
  readonly notes: 'ignored' | 'distinct';
  readonly rate: EventRate;
  /** Whether all events share one budget, or each subject has its own. */
  readonly budgetPer: 'recorder' | 'subject';
  /** Limit of remembered series; each may wait for the API server. */
  readonly maxSeries: number;
  /** Time without a repetition after which a series ends; the next event starts a new one. */
  readonly seriesEnd: Millis;
}

/** Policy of a program on every node: few events, so that a large cluster does not flood the API server. Series as in kube-proxy. */
export const agentEventPolicy: EventPolicy = {
  notes: 'ignored',
  rate: { burst: 25, refillInterval: seconds(10) },
  budgetPer: 'recorder',
  maxSeries: 200,
  seriesEnd: seconds(360),
};

/** Policy of one program with events about many objects. As in client-go's recorder: 25 per object, one more every 5 minutes. */
export const controllerEventPolicy: EventPolicy = {
  notes: 'distinct',
  rate: { burst: 25, refillInterval: seconds(300) },
  budgetPer: 'subject',
  maxSeries: 4096,
  seriesEnd: seconds(600),
};
