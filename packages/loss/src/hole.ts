import type { Millis } from '@switchyard/core';
import { type CheckTiming, takenInAfter, takenOutAfter } from './check-timing.ts';

/**
 * Probability that a load balancer holds no node UP for a while, when the only pod moves to another node: it takes the old
 * node out before it takes the new one in. 0 to 1, over all phases that the checks of the two nodes can have to each other.
 * `proxyDelay`: how long after the new node's first good answer the old node's first bad one comes. The shorter, the
 * likelier: with one failure every 2 s, 11 % at 1.05 s and 45 % at 0.1 s (4 of 12 and 4 of 8 measured).
 *
 * While nodes that were UP a moment ago are used (`lastUp`) nothing is lost, so only what outlasts `lastUpFor` counts. With `all` it
 * is as likely, but costs only the part of the traffic that meets neither of the two nodes; see `predictRollout`.
 */
export function noneUpProbability(timing: CheckTiming, proxyDelay: Millis): number {
  const newIn = takenInAfter(timing);
  const oldOut = takenOutAfter(timing);
  const lastUpFor = timing.whenNoneUp === 'lastUp' ? timing.lastUpFor : 0;
  const outFrom = oldOut.shortest + proxyDelay + lastUpFor;
  const outTo = oldOut.longest + proxyDelay + lastUpFor;
  // Both are uniform: the share of the rectangle in which the old node is out first, as a difference of half squares.
  const half = (x: number): number => (x > 0 ? (x * x) / 2 : 0);
  const area =
    half(newIn.longest - outFrom) -
    half(newIn.shortest - outFrom) -
    half(newIn.longest - outTo) +
    half(newIn.shortest - outTo);
  return area / ((newIn.longest - newIn.shortest) * (outTo - outFrom));
}
