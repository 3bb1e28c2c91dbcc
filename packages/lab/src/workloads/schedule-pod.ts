import type { Node, Pod, PodAffinityTerm, PodSpec } from '@switchyard/core/kubernetes';
import { findCondition } from './conditions.ts';
import { matchesLabels, matchesSelector } from './labels.ts';
import { controllerOf, isPodActive, isPodEnded, nameOf } from './pod-facts.ts';

/** Node of a pod, or the reason why no node fits, with kube-scheduler's wording. */
export type ScheduleDecision =
  | { readonly status: 'fits'; readonly nodeName: string }
  | { readonly status: 'unschedulable'; readonly message: string };

/** Nodes and all pods of the cluster, those without a node included. */
export interface ScheduleInput {
  readonly nodes: readonly Node[];
  readonly pods: readonly Pod[];
}

/**
 * Chooses a node: not cordoned, not NotReady, taints tolerated, `nodeSelector` matched, and no required anti-affinity
 * broken, in either direction; terminating pods still count, as in Kubernetes. Among those that fit, the one
 * with the fewest pods of the same owner, then the fewest pods, then the first by name.
 */
export function schedulePod(pod: Pod, input: ScheduleInput): ScheduleDecision {
  const placed = input.pods.filter((other) => other.spec?.nodeName !== undefined && !isPodEnded(other));
  const reasons = new Map<string, number>();
  const fitting: Node[] = [];
  for (const node of input.nodes) {
    const reason = refusal(pod, node, placed, input.nodes);
    if (reason === undefined) fitting.push(node);
    else reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  const best = fitting.toSorted((left, right) => compareNodes(left, right, pod, placed))[0];
  if (best !== undefined) return { status: 'fits', nodeName: nameOf(best) };
  const listed = [...reasons].map(([reason, count]) => `${count} ${reason}`).sort();
  const why = listed.length === 0 ? 'no nodes are registered' : listed.join(', ');
  return { status: 'unschedulable', message: `0/${input.nodes.length} nodes are available: ${why}.` };
}

function refusal(pod: Pod, node: Node, placed: readonly Pod[], nodes: readonly Node[]): string | undefined {
  if (node.spec?.unschedulable === true) return 'node(s) were unschedulable';
  if (findCondition(node.status?.conditions, 'Ready')?.status === 'False') return 'node(s) were not ready';
  const taint = node.spec?.taints?.find(
    (one) => one.effect !== 'PreferNoSchedule' && !isTolerated(one, pod.spec?.tolerations),
  );
  if (taint !== undefined) return `node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`;
  if (!matchesLabels(pod.spec?.nodeSelector ?? {}, node.metadata.labels)) {
    return "node(s) didn't match Pod's node affinity/selector";
  }
  const labelsByNode = new Map(nodes.map((one) => [nameOf(one), one.metadata.labels ?? {}]));
  const here = placed.filter((other) => other.metadata.namespace === pod.metadata.namespace);
  const isNear = (other: Pod, key: string): boolean => {
    const value = node.metadata.labels?.[key];
    return value !== undefined && labelsByNode.get(other.spec?.nodeName ?? '')?.[key] === value;
  };
  const repels = (a: Pod, b: Pod): boolean =>
    antiAffinity(a).some(
      (term) => matchesSelector(term.labelSelector, b.metadata.labels) && isNear(a === pod ? b : a, term.topologyKey),
    );
  if (here.some((other) => repels(pod, other))) return "node(s) didn't match pod anti-affinity rules";
  if (here.some((other) => repels(other, pod))) {
    return "node(s) didn't satisfy existing pods anti-affinity rules";
  }
  return undefined;
}

function antiAffinity(pod: Pod): readonly PodAffinityTerm[] {
  return pod.spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
}

type Taint = NonNullable<NonNullable<Node['spec']>['taints']>[number];

/** Whether one of `tolerations` matches the taint. */
export function isTolerated(taint: Taint, tolerations: PodSpec['tolerations']): boolean {
  return (tolerations ?? []).some((toleration) => {
    if (toleration.effect !== undefined && toleration.effect !== taint.effect) return false;
    if (toleration.key !== undefined && toleration.key !== taint.key) return false;
    return toleration.operator === 'Exists' || (toleration.value ?? '') === (taint.value ?? '');
  });
}

function compareNodes(left: Node, right: Node, pod: Pod, placed: readonly Pod[]): number {
  const owner = controllerOf(pod)?.uid;
  const on = (node: Node): readonly Pod[] =>
    placed.filter((other) => other.spec?.nodeName === nameOf(node) && isPodActive(other));
  const siblings = (node: Node): number =>
    owner === undefined ? 0 : on(node).filter((other) => controllerOf(other)?.uid === owner).length;
  return (
    siblings(left) - siblings(right) ||
    on(left).length - on(right).length ||
    nameOf(left).localeCompare(nameOf(right), 'en', { numeric: true })
  );
}
