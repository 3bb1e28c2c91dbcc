import { type Millis, millis, systemClock } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { type App, inBackground, type PodPlace, type RolloutSetup, servingPods } from '@switchyard/rollout';

/** Ends old pods once no traffic needs them. Disposing ends the observation. */
export interface PodRelease extends AsyncDisposable {
  /** Time at which each old pod's grace period was cut short, by pod name. It served until then, and a moment longer. */
  readonly releasedAt: ReadonlyMap<string, Millis>;
}

/** Long enough to see that a terminating pod is used. */
const leastTerminating = 1200;
/** Between the moment a pod is no longer needed and its release, for packets in flight. */
const margin = 700;
/** A pod is released after this time even if it is still needed: a load balancer that never leaves it must show as losses. */
const longestTerminating = 12_000;
/** Last grace period, in the manifest's seconds: SIGKILL follows a tenth of a second later. */
const lastGrace = 1;
const period = millis(50);
/** Longest wait for the API server, in milliseconds. */
const patience = 10_000;

/**
 * Makes applications drain as they should on a machine of any speed. An old pod serves until the load balancer has left its node, or,
 * without a load balancer, until another pod is ready; then it ends. A grace period in seconds would be too long on a fast machine,
 * and too short on a slow one, where a pod may take seconds to start.
 */
export function releasePods(setup: RolloutSetup, app: App, oldPods: readonly PodPlace[]): PodRelease {
  const releasedAt = new Map<string, Millis>();
  const notNeededSince = new Map<string, Millis>();
  const look = async (pod: PodPlace): Promise<void> => {
    const now = systemClock.now();
    const going = deletedAt(setup, pod);
    if (going === undefined || releasedAt.has(pod.name)) return;
    if (isNeeded(setup, app, { pod, oldPods })) notNeededSince.delete(pod.name);
    else if (!notNeededSince.has(pod.name)) notNeededSince.set(pod.name, now);
    const since = notNeededSince.get(pod.name);
    const isDone = since !== undefined && now - since >= margin && now - going >= leastTerminating;
    if (!isDone && now - going < longestTerminating) return;
    releasedAt.set(pod.name, now);
    await letGo(setup, { ...app, name: pod.name });
  };
  const looking = inBackground(async (signal) => {
    while (!signal.aborted) {
      await Promise.all(oldPods.map(look));
      await systemClock.sleep(period, signal).catch(() => undefined);
    }
  });
  return { releasedAt, ...looking };
}

function deletedAt({ experiment }: RolloutSetup, pod: PodPlace): Millis | undefined {
  return experiment.workloadEvents.find((event) => event.kind === 'deletionTimestampSet' && event.pod === pod.name)?.at;
}

/** Behind a load balancer until that has left the pod's node for another; else until another pod of the app is ready. */
function isNeeded(
  { experiment, loadBalancer }: RolloutSetup,
  app: App,
  { pod, oldPods }: { readonly pod: PodPlace; readonly oldPods: readonly PodPlace[] },
): boolean {
  const others = servingPods(experiment.workloadEvents, app.name);
  if (loadBalancer === undefined) return others.length === 0;
  const hasMoved = oldPods.length > 1 || others.length > 0;
  return (
    !hasMoved || app.ipFamilies.some((ipFamily) => loadBalancer.healthOf({ ...app, ipFamily }).get(pod.node) !== false)
  );
}

async function letGo(
  { experiment }: RolloutSetup,
  pod: { readonly namespace: string; readonly name: string },
): Promise<void> {
  const options = { gracePeriodSeconds: lastGrace };
  await experiment.api.delete(apiResources.pods, pod, options, AbortSignal.timeout(patience));
}
