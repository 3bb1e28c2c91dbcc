import type { WorkloadEvent } from '@switchyard/lab';
import type { PodPlace } from '../run-record.ts';
import { podMoments } from './pod-moments.ts';

/** The app's pods that are ready and not going, by the events so far, in the order in which they became ready. */
export function servingPods(events: readonly WorkloadEvent[], app: string): readonly PodPlace[] {
  const serving = new Map<string, PodPlace>();
  for (const { pod, node, phase } of podMoments(events, app)) {
    if (phase === 'ready') serving.set(pod, { name: pod, node });
    else if (phase !== 'created' && phase !== 'started') serving.delete(pod);
  }
  return [...serving.values()];
}
