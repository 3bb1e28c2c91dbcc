import type { Clock, Millis } from '@switchyard/core';
import type { Pod } from '@switchyard/core/kubernetes';
import type { ResourceWatch } from './cluster-watch.ts';
import { isPodReady, readyTransition } from './pod-facts.ts';

/** When a pod became ready, as exactly as is known (the API keeps whole seconds only); undefined if nobody saw it. */
export type ReadySince = (pod: Pod) => Millis | undefined;

/** Remembers when pods became ready. Subscribe it before the controller that asks. */
export function followReadySince(pods: ResourceWatch<Pod>, clock: Clock): ReadySince {
  const byUid = new Map<string, Millis>();
  pods.subscribe(({ before, after }) => {
    const uid = (after ?? before)?.metadata.uid ?? '';
    if (after === undefined || !isPodReady(after)) byUid.delete(uid);
    // Only a change that was seen is dated here; for pods found ready the API's time has to do.
    else if (before !== undefined && !isPodReady(before)) byUid.set(uid, clock.now());
  });
  return (pod) => byUid.get(pod.metadata.uid ?? '');
}

/** How long a pod has still to be ready before it is available; 0: it is; undefined: it is not even ready. */
export function untilAvailable(
  pod: Pod,
  { readySince, minReady, now }: { readonly readySince: ReadySince; readonly minReady: Millis; readonly now: Millis },
): number | undefined {
  if (!isPodReady(pod)) return undefined;
  const since = readySince(pod) ?? readyTransition(pod);
  if (minReady === 0) return 0;
  return since === undefined ? minReady : Math.max(0, since + minReady - now);
}
