import { type Millis, millis } from '@switchyard/core';
import { takenInAfter, takenOutAfter } from './check-timing.ts';
import type { RolloutSetting } from './rollout-setting.ts';
import { earlier, later } from './steps.ts';

/**
 * Time that an app must continue to accept connections after its pod's deletion (preStop and drain together) so that no connection
 * reaches a node whose app is gone, in rollouts that have a new pod ready first: until the proxy has noticed and the load balancer
 * has taken the node out, h + fall x interval. Where recently UP nodes are used while none is UP, also until the load balancer has
 * taken the new node in; several replicas do not change that, as they may all be on their way out by then. Undefined: no time is
 * enough, the proxy itself drops what comes after the deletion (no fallback).
 *
 * It does not prevent losses of a load balancer that closes connections while no node is UP, or spreads them over nodes without a pod: see
 * `noneUpProbability`.
 */
export function requiredServing(setting: Omit<RolloutSetting, 'app'>): Millis | undefined {
  const { policy, check, proxy, fastDrain, shape } = setting;
  if (policy === 'Cluster') return proxy.noticesTerminating.longest;
  if (!proxy.terminatingFallback) return undefined;
  const isTakenOut = whole(proxy.noticesTerminating.longest + takenOutAfter(check).longest);
  const isTakenIn = whole(proxy.noticesReady.longest + takenInAfter(check).longest - shape.minReady);
  if (fastDrain !== undefined) {
    // A draining node is still used while no other is UP; one with a new pod beside the old one does not drain at all.
    const isLeft = later(earlier(isTakenOut, fastDrain.longest), isTakenIn);
    return shape.spread === 'anywhere' ? later(isLeft, proxy.noticesTerminating.longest) : isLeft;
  }
  return check.whenNoneUp === 'lastUp' ? later(isTakenOut, isTakenIn) : isTakenOut;
}

function whole(duration: number): Millis {
  return millis(Math.ceil(duration));
}
