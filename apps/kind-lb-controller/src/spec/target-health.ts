import type { LoadBalancerId, Target } from './load-balancer-spec.ts';

/** Which targets may get connections now, as HAProxy's checks have it. A value of one moment: ask again when it has changed. */
export interface TargetHealth {
  /**
   * Whether HAProxy holds the target UP, or would use it because none of its family is UP and the profile says `lastUp` or `all`.
   * Draining is not considered here. False for an unchecked target.
   */
  isUp(id: LoadBalancerId, target: Target): boolean;
}
