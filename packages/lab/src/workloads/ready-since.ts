import type { Clock, Millis } from '@switchyard/core';
import type { Pod } from '@switchyard/core/kubernetes';
import type { ResourceWatch } from './cluster-watch.ts';
import { isPodReady, readyTransition } from './pod-facts.ts';

/** Time at which the watch saw a pod become ready (the API has whole seconds only); undefined if it was ready at the start. */
export type ReadySince = (pod: Pod) => Millis | undefined;

/** Records when pods become ready. Subscribe it before the controller that uses it. */
export function followReadySince(pods: ResourceWatch<Pod>, clock: Clock): ReadySince {
  const byUid = new Map<string, Millis>();
  pods.subscribe(({ before, after }) => {
    const uid = (after ?? before)?.metadata.uid ?? '';
    if (after === undefined || !isPodReady(after)) byUid.delete(uid);
    // Only observed changes have an exact time; pods that were ready at the start have the API's time.
    else if (before !== undefined && !isPodReady(before)) byUid.set(uid, clock.now());
  });
  return (pod) => byUid.get(pod.metadata.uid ?? '');
}

/** Returns the time until a ready pod is available; 0 if it is; undefined if the pod is not ready. */
export function untilAvailable(
  pod: Pod,
  { readySince, minReady, now }: { readonly readySince: ReadySince; readonly minReady: Millis; readonly now: Millis },
): number | undefined {
  if (!isPodReady(pod)) return undefined;
  const since = readySince(pod) ?? readyTransition(pod);
  if (minReady === 0) return 0;
  return since === undefined ? minReady : Math.max(0, since + minReady - now);
}
