import { type EndpointRecord, type Millis, millis, systemClock } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  type App,
  inBackground,
  type PodPlace,
  type RolloutSite,
  servingPods,
  type SliceObserver,
} from '@switchyard/rollout';
import type { PreparedRollout, RolloutPace } from '../../model/rollout.ts';

/** Ends old pods once no traffic needs them. Disposing ends the observation. */
export interface PodRelease extends AsyncDisposable {
  /** Time at which each old pod's grace period was cut short, by pod name. It served until then, and a moment longer. */
  readonly releasedAt: ReadonlyMap<string, Millis>;
}

/** In a lab, whose proxies hear of a change in milliseconds. */
export const labPace: RolloutPace = { margin: 1500, longest: 12_000, lineInterval: 100 };

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
 * Makes applications drain as they should on a machine of any speed. An old pod serves until the EndpointSlices have another ready endpoint
 * and the load balancer, if there is one, has left its node; then it ends. A grace period in seconds would be too long on a fast machine,
 * and too short on a slow one, where a pod may take seconds to start. Only the load balancer follows the proxy under test, so only for it
 * the wait has an end. `slices` must have the endpoints of the old pods so far.
 */
export function releasePods(
  { setup, app, pace, endPod }: Pick<PreparedRollout, 'setup' | 'app' | 'pace' | 'endPod'>,
  oldPods: readonly PodPlace[],
  { states }: Pick<SliceObserver, 'states'>,
): PodRelease {
  const releasedAt = new Map<string, Millis>();
  const replacedSince = new Map<string, Millis>();
  const unneededSince = new Map<string, Millis>();
  const { experiment, loadBalancer } = setup;
  const { workloadEvents } = experiment;
  const oldAddresses = new Set(endpointsIn(states).map(({ address }) => address));
  const hasLeft = ({ node }: PodPlace): boolean =>
    loadBalancer === undefined ||
    app.ipFamilies.every((ipFamily) => loadBalancer.healthOf({ ...app, ipFamily }).get(node) === false);
  /** Pods of a DaemonSet stand in for each other; with a load balancer even before any successor is there. */
  const isReplaced = (): boolean =>
    oldPods.length > 1
      ? loadBalancer !== undefined || servingPods(workloadEvents, app.name).length > 0
      : endpointsIn(states).some(({ ready, address }) => ready && !oldAddresses.has(address));
  const look = async (pod: PodPlace): Promise<void> => {
    const now = systemClock.now();
    const going = workloadEvents.find(
      ({ kind, pod: name }) => kind === 'deletionTimestampSet' && name === pod.name,
    )?.at;
    if (going === undefined || releasedAt.has(pod.name)) return;
    const canGo = isReplaced();
    const replaced = timeSince(replacedSince, { pod, isSo: canGo, now });
    const unneeded = timeSince(unneededSince, { pod, isSo: canGo && hasLeft(pod), now });
    if (replaced < pace.longest && (unneeded < pace.margin || now - going < leastTerminating)) return;
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

/** For how many milliseconds something has been so of a pod; 0: it is not so. */
function timeSince(
  since: Map<string, Millis>,
  { pod, isSo, now }: { readonly pod: PodPlace; readonly isSo: boolean; readonly now: Millis },
): number {
  if (!isSo) since.delete(pod.name);
  else if (!since.has(pod.name)) since.set(pod.name, now);
  return now - (since.get(pod.name) ?? now);
}

/** Endpoints as the API server has them now. */
function endpointsIn(states: SliceObserver['states']): readonly EndpointRecord[] {
  return states.at(-1)?.slices.flatMap(({ endpoints }) => endpoints) ?? [];
}
