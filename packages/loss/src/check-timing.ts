import { type Millis, millis } from '@switchyard/core';

/** Timing of a load balancer's health checks: the part of a health profile that decides what is lost. */
export interface CheckTiming {
  /** Pause between two checks of a node that is UP, and of one that is about to come back. */
  readonly interval: Millis;
  /** Pause between two checks of a node that is DOWN. */
  readonly downInterval: Millis;
  /** Failed checks in a row until a node that is UP is taken out. */
  readonly fall: number;
  /** Good checks in a row until a node that is DOWN is used again. */
  readonly rise: number;
  /** Longest wait for the answer to a check; undefined: `interval`. */
  readonly timeout: Millis | undefined;
  /** Handling of connections while no node is UP: close them, use nodes that were UP within the last `lastUpFor`, or use all nodes. */
  readonly whenNoneUp: 'close' | 'lastUp' | 'all';
  readonly lastUpFor: Millis;
}

/** A duration of which only the bounds are known. `longest` is not less than `shortest`. */
export interface Span {
  readonly shortest: Millis;
  readonly longest: Millis;
}

/** Time from a node's first failing answer until it is taken out: the last good check was just before, or just then. */
export function takenOutAfter({ interval, fall }: CheckTiming): Span {
  return { shortest: millis((fall - 1) * interval), longest: millis(fall * interval) };
}

/**
 * Time from the first good answer of a DOWN node until it is used. As HAProxy counts: the first good check comes within
 * `downInterval`, each further one `interval` later.
 */
export function takenInAfter({ interval, downInterval, rise }: CheckTiming): Span {
  const more = (rise - 1) * interval;
  return { shortest: millis(more), longest: millis(downInterval + more) };
}
