import { type Millis, millis, systemClock } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { type App, inBackground, type PodPlace, type RolloutSite, servingPods } from '@switchyard/rollout';
import type { PreparedRollout, RolloutPace } from '../../model/rollout.ts';

/** Ends old pods once no traffic needs them. Disposing ends the observation. */
export interface PodRelease extends AsyncDisposable {
  /** Time at which each old pod's grace period was cut short, by pod name. It served until then, and a moment longer. */
  readonly releasedAt: ReadonlyMap<string, Millis>;
}

/** In a lab, whose proxies hear of a change in milliseconds. */
export const labPace: RolloutPace = { margin: 700, longest: 12_000, lineInterval: 100 };

/** Long enough to see that a terminating pod is used. */
const leastTerminating = 1200;
const period = millis(50);
/** Longest wait for the API server, in milliseconds. */
const patience = 10_000;

/** Last grace period, in the manifest's seconds: SIGKILL follows a tenth of a second later. */
const lastGrace = 1;

/** Makes a lab's kubelet end a pod that is being deleted. A real one keeps the first grace period. */
export async function shortenGrace(
  { api }: RolloutSite,
  { namespace }: App,
  { name }: PodPlace,
  signal: AbortSignal,
): Promise<void> {
  await api.delete(apiResources.pods, { namespace, name }, { gracePeriodSeconds: lastGrace }, signal);
}

/**
 * Makes applications drain as they should on a machine of any speed. An old pod serves until the load balancer has left its node, or,
 * without a load balancer, until another pod is ready; then it ends. A grace period in seconds would be too long on a fast machine,
 * and too short on a slow one, where a pod may take seconds to start.
 */
export function releasePods(
  { setup, app, pace, endPod }: Pick<PreparedRollout, 'setup' | 'app' | 'pace' | 'endPod'>,
  oldPods: readonly PodPlace[],
): PodRelease {
  const releasedAt = new Map<string, Millis>();
  const notNeededSince = new Map<string, Millis>();
  const { experiment, loadBalancer } = setup;
  const { workloadEvents } = experiment;
  /** Behind a load balancer until that has left the pod's node for another; else until another pod of the app is ready. */
  const isNeeded = ({ node }: PodPlace): boolean => {
    const others = servingPods(workloadEvents, app.name);
    if (loadBalancer === undefined) return others.length === 0;
    const isUsed = app.ipFamilies.some((ipFamily) => loadBalancer.healthOf({ ...app, ipFamily }).get(node) !== false);
    return isUsed || (oldPods.length < 2 && others.length === 0);
  };
  const look = async (pod: PodPlace): Promise<void> => {
    const now = systemClock.now();
    const going = workloadEvents.find(
      ({ kind, pod: name }) => kind === 'deletionTimestampSet' && name === pod.name,
    )?.at;
    if (going === undefined || releasedAt.has(pod.name)) return;
    if (isNeeded(pod)) notNeededSince.delete(pod.name);
    else if (!notNeededSince.has(pod.name)) notNeededSince.set(pod.name, now);
    const since = notNeededSince.get(pod.name);
    const isDone = since !== undefined && now - since >= pace.margin && now - going >= leastTerminating;
    if (!isDone && now - going < pace.longest) return;
    releasedAt.set(pod.name, now);
    await endPod(pod, AbortSignal.timeout(patience));
  };
  const looking = inBackground(async (signal) => {
    while (!signal.aborted) {
      await Promise.all(oldPods.map(look));
      await systemClock.sleep(period, signal).catch(() => undefined);
    }
  });
  return { releasedAt, ...looking };
}
