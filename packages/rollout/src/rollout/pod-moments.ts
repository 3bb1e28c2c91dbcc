import { HostError } from '@switchyard/core';
import type { WorkloadEvent } from '@switchyard/lab';
import type { Workload } from './app.ts';
import type { PodMoment, PodPlace, Move } from '../run-record.ts';

const phases: Readonly<Partial<Record<WorkloadEvent['kind'], PodMoment['phase']>>> = {
  podCreated: 'created',
  processStarted: 'started',
  podReady: 'ready',
  deletionTimestampSet: 'deleting',
  sigtermSent: 'sigterm',
  acceptingStopped: 'ended',
  processEnded: 'ended',
  objectGone: 'gone',
};

/** The phases of one app's pods, in order of time. A pod's end is when it stops accepting, or else its process's end. */
export function podMoments(events: readonly WorkloadEvent[], app: string): readonly PodMoment[] {
  const nodes = new Map<string, string>();
  for (const event of events) if ('node' in event) nodes.set(event.pod, event.node);
  const moments: PodMoment[] = [];
  const ended = new Set<string>();
  for (const event of events) {
    const phase = phases[event.kind];
    if (phase === undefined || !event.pod.startsWith(`${app}-`)) continue;
    if (phase === 'ended' && ended.has(event.pod)) continue;
    if (phase === 'ended') ended.add(event.pod);
    moments.push({ at: event.at, pod: event.pod, node: nodes.get(event.pod) ?? '', phase });
  }
  return moments.sort((a, b) => a.at - b.at);
}

/** The app's pods that are ready and not going, by the events so far, in the order in which they became ready. */
export function servingPods(events: readonly WorkloadEvent[], app: string): readonly PodPlace[] {
  const serving = new Map<string, PodPlace>();
  for (const { pod, node, phase } of podMoments(events, app)) {
    if (phase === 'ready') serving.set(pod, { name: pod, node });
    else if (phase !== 'created' && phase !== 'started') serving.delete(pod);
  }
  return [...serving.values()];
}

/**
 * Which pod made way for which, in the order in which the old ones were deleted. A DaemonSet's pod is followed by one on the same node, a
 * Deployment's by whichever became ready next.
 */
export function movesOf(
  pods: readonly PodMoment[],
  oldPods: readonly PodPlace[],
  workload: Workload,
): readonly [Move, ...Move[]] {
  const old = new Set(oldPods.map(({ name }) => name));
  const fresh = pods.filter(({ pod, phase }) => phase === 'ready' && !old.has(pod));
  const going = pods.filter(({ pod, phase }) => phase === 'deleting' && old.has(pod));
  const taken = new Set<string>();
  const moves = going.flatMap(({ pod, node, at }): Move[] => {
    const next = fresh.find((one) => !taken.has(one.pod) && (workload === 'deployment' || one.node === node));
    if (next === undefined) return [];
    taken.add(next.pod);
    return [{ oldPod: { name: pod, node }, newPod: { name: next.pod, node: next.node }, deletedAt: at }];
  });
  const [first, ...others] = moves;
  if (first === undefined || moves.length < old.size) {
    const names = [...old].join(', ');
    throw new HostError('rollout.events', `not each of ${names} was deleted and followed by a pod that became ready`);
  }
  return [first, ...others];
}
