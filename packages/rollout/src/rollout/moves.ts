import { HostError } from '@switchyard/core';
import type { Move, PodMoment, PodPlace } from '../run-record.ts';
import type { Workload } from './app.ts';

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
