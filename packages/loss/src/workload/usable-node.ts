import type { Node, PodSpec } from '@switchyard/core/kubernetes';

type Taint = NonNullable<NonNullable<Node['spec']>['taints']>[number];

/**
 * Whether a node can run pods of this template, and load balancers may use it. Considers `unschedulable`, taints and the
 * template's nodeSelector; node affinity is not looked at.
 */
export function isUsableNode(node: Node, template: PodSpec | undefined): boolean {
  const labels = node.metadata.labels ?? {};
  if (node.spec?.unschedulable === true || isExcluded(node)) return false;
  if (!Object.entries(template?.nodeSelector ?? {}).every(([key, value]) => labels[key] === value)) return false;
  const tolerations = template?.tolerations ?? [];
  const isTolerated = ({ key, value, effect }: Taint): boolean =>
    tolerations.some(
      (one) =>
        (one.effect === undefined || one.effect === '' || one.effect === effect) &&
        (one.key === undefined || one.key === '' || one.key === key) &&
        (one.operator === 'Exists' || (one.value ?? '') === (value ?? '')),
    );
  return (node.spec?.taints ?? []).every((taint) => taint.effect === 'PreferNoSchedule' || isTolerated(taint));
}

/** Whether load balancers leave a node out: it is being deleted, about to be removed (KEP-3836), or labelled so (KEP-1143). */
function isExcluded({ metadata, spec }: Node): boolean {
  const isLeaving = spec?.taints?.some(({ key }) => key === 'ToBeDeletedByClusterAutoscaler') ?? false;
  const isLabelled = metadata.labels?.['node.kubernetes.io/exclude-from-external-load-balancers'] !== undefined;
  return isLeaving || isLabelled || (metadata.deletionTimestamp ?? '') !== '';
}
