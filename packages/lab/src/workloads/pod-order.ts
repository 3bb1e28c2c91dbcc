import type { Pod } from '@switchyard/core/kubernetes';
import { isPodReady, readyTransition } from './pod-facts.ts';

/**
 * Sorts pods in the order of their deletion by a controller: without a node, Pending, not ready, on a node with more
 * siblings, ready for a shorter time, younger, then by name.
 */
export function inDeletionOrder(pods: readonly Pod[]): readonly Pod[] {
  const perNode = new Map<string, number>();
  for (const pod of pods) {
    const node = pod.spec?.nodeName ?? '';
    perNode.set(node, (perNode.get(node) ?? 0) + 1);
  }
  const rank = (pod: Pod): readonly number[] => [
    pod.spec?.nodeName === undefined ? 0 : 1,
    pod.status?.phase === 'Running' ? 1 : 0,
    isPodReady(pod) ? 1 : 0,
    -(perNode.get(pod.spec?.nodeName ?? '') ?? 0),
    -(readyTransition(pod) ?? 0),
    -Date.parse(pod.metadata.creationTimestamp ?? '1970-01-01T00:00:00Z'),
  ];
  return pods
    .map((pod) => ({ pod, rank: rank(pod) }))
    .sort(
      (a, b) => compareRanks(a.rank, b.rank) || (a.pod.metadata.name ?? '').localeCompare(b.pod.metadata.name ?? ''),
    )
    .map(({ pod }) => pod);
}

function compareRanks(left: readonly number[], right: readonly number[]): number {
  for (const [index, value] of left.entries()) {
    const difference = value - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
