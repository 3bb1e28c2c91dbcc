import type { Millis } from '../time.ts';

/** When a load balancer's health checks take a node out and in again: all of a health profile that decides what is lost. */
export interface CheckTiming {
  /** Pause between two checks of a node that is UP. */
  readonly interval: Millis;
  /** Pause between two checks of a node that is DOWN. */
  readonly downInterval: Millis;
  /** Failed checks in a row until a node that is UP is taken out. */
  readonly fall: number;
  /** Good checks in a row until a node that is DOWN is used again. */
  readonly rise: number;
  /** Longest wait for the answer to a check; undefined: `interval`. */
  readonly timeout: Millis | undefined;
  /** What becomes of connections while no node is UP: closed, or sent to those that were UP within the last `lastUpFor`. */
  readonly whenNoneUp: 'close' | 'lastUp';
  /** Only for `lastUp`. */
  readonly lastUpFor: Millis;
}

/** A stretch of time of which only the bounds are known. `longest` is not less than `shortest`. */
export interface Span {
  readonly shortest: Millis;
  readonly longest: Millis;
}
