import type { V1Node, V1PodSpec, V1Taint } from '@kubernetes/client-node';
import { nodeFromApi } from '../cluster/cluster-objects.ts';

/**
 * Whether a node can run pods of this template, and load balancers may use it. Considers `unschedulable`, taints and the
 * template's nodeSelector; node affinity is not looked at.
 */
export function isUsableNode(node: V1Node, template: V1PodSpec | undefined): boolean {
  const projected = nodeFromApi(node);
  if (projected === undefined || projected.exclusion !== undefined || node.spec?.unschedulable === true) return false;
  const labels = node.metadata?.labels ?? {};
  if (!Object.entries(template?.nodeSelector ?? {}).every(([key, value]) => labels[key] === value)) return false;
  const tolerations = template?.tolerations ?? [];
  const isTolerated = ({ key, value, effect }: V1Taint): boolean =>
    tolerations.some(
      (one) =>
        (one.effect === undefined || one.effect === '' || one.effect === effect) &&
        (one.key === undefined || one.key === '' || one.key === key) &&
        (one.operator === 'Exists' || (one.value ?? '') === (value ?? '')),
    );
  return (node.spec?.taints ?? []).every((taint) => taint.effect === 'PreferNoSchedule' || isTolerated(taint));
}
