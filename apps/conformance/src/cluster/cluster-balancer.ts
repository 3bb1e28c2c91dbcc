import { type IpFamily, ipFamilyOf, type Millis, millis, seconds, systemClock } from '@switchyard/core';
import { createTrafficHandlers } from '@switchyard/lab';
import { awaitAnswer, type LoadBalancer, loadBalancerTarget, type LoadBalancerMoment } from '@switchyard/rollout';
import { type HealthObserver, healthCheckNodePort, observeHealth } from '@switchyard/rollout';
import type { App, LoadTarget, RequestSender, RolloutSetup, RolloutSite } from '@switchyard/rollout';
import { assignedAddresses } from './load-balancing.ts';
import type { CallSender } from './traffic-caller.ts';
import { trafficSender } from './traffic-sender.ts';

/**
 * Time until a load balancer has left a node whose health check fails: three checks, 5 seconds apart, as HAProxy's default. What the load
 * balancer of a cluster does is not seen, so a pod serves this long.
 */
const leavingTime: Millis = seconds(15);
const healthPeriod = millis(250);
/** For the first answer through a load balancer whose address is assigned. */
const longestSetUp = seconds(60);

/** This process as a sender: it stands outside of the cluster. */
function ownSender(signal: AbortSignal): RequestSender {
  const handlers = createTrafficHandlers({ pod: 'runner', node: '', host: undefined });
  const call: CallSender = (name, argument) => handlers[name](argument);
  return trafficSender(call, signal);
}

/** The load balancer that the cluster's controller made for an app, as far as health checks of its nodes show. */
export async function observeBalancer(site: RolloutSite, app: App, signal: AbortSignal): Promise<LoadBalancer> {
  const [ipFamily = 'IPv4'] = app.ipFamilies;
  const port = await healthCheckNodePort(site, app, signal);
  const prober = await site.outside.openProber(signal);
  const health = observeHealth({ prober, nodes: site.nodes, port, ipFamily, period: healthPeriod });
  const momentsOf = (): readonly LoadBalancerMoment[] => balancerMoments(health.moments, systemClock.now());
  return {
    programs: [],
    momentsOf,
    healthOf: () => new Map(momentsOf().map(({ node, isUp }) => [node, isUp])),
    addressOf: async ({ ipFamily: family }, inner) => {
      const all = await assignedAddresses(site.api, app, inner);
      return all.find((address) => ipFamilyOf(address) === family) ?? '';
    },
    [Symbol.asyncDispose]: async () => {
      await health[Symbol.asyncDispose]();
      await prober[Symbol.asyncDispose]();
    },
  };
}

/** When a load balancer uses a node, and when it has left it, in order of time. */
export function balancerMoments(health: HealthObserver['moments'], now: Millis): readonly LoadBalancerMoment[] {
  return health
    .flatMap(({ at, node, status }, index): readonly LoadBalancerMoment[] => {
      if (status === 200) return [{ at, node, isUp: true, reason: 'its health check answers 200' }];
      const left = millis(at + leavingTime);
      const next = health.slice(index + 1).find((one) => one.node === node && one.status === 200);
      if (left > Math.min(now, next?.at ?? now)) return [];
      return [{ at: left, node, isUp: false, reason: `its health check failed for ${leavingTime / 1000} s` }];
    })
    .toSorted((a, b) => a.at - b.at);
}

/** From this process through the load balancer. Rejects with `DataplaneError` if that does not answer at all. */
export async function balancedTarget(
  setup: RolloutSetup,
  app: App,
  ipFamily: IpFamily,
  signal: AbortSignal,
): Promise<LoadTarget> {
  const target = { ...(await loadBalancerTarget(setup, app, ipFamily, signal)), from: ownSender(signal) };
  const what = `an answer through the load balancer at ${target.address}, which this machine must be able to reach`;
  await awaitAnswer(target, { what, timeout: longestSetUp, programs: [], signal });
  return target;
}
