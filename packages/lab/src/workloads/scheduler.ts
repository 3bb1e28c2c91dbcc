import { apiResources, type Node, type Pod, type PodAffinityTerm, type PodSpec } from '@switchyard/core/kubernetes';
import {
  apiTime,
  controllerOf,
  findCondition,
  isPodActive,
  isPodEnded,
  matchesLabels,
  matchesSelector,
  nameOf,
  replaceCondition,
} from './facts.ts';
import type { ControllerContext } from './context.ts';
import { KeyedRunner } from './keyed-runner.ts';

/** Starts the scheduler: every pod without a node gets one, or a `PodScheduled` condition with the reason. */
export function startScheduler(context: ControllerContext): AsyncDisposable {
  const { pods, nodes } = context.watches;
  const runner = new KeyedRunner('scheduler', context, (_, signal) => scheduleAll(context, signal));
  // One key: pods are placed one after the other, because each placement changes the next decision.
  const poke = (): void => {
    if ([...pods.values()].some(isWaiting)) runner.poke('all pods');
  };
  pods.subscribe(poke);
  nodes.subscribe(poke);
  return runner;
}

function isWaiting(pod: Pod): boolean {
  return pod.spec?.nodeName === undefined && isPodActive(pod);
}

async function scheduleAll(context: ControllerContext, signal: AbortSignal): Promise<void> {
  const { api } = context;
  const [nodes, listed] = await Promise.all([
    api.list(apiResources.nodes, {}, signal),
    api.list(apiResources.pods, {}, signal),
  ]);
  let pods = listed.items;
  for (const pod of pods.filter(isWaiting)) {
    const decision = schedulePod(pod, { nodes: nodes.items, pods });
    if (decision.status === 'unschedulable') {
      await sayUnschedulable(pod, decision.message, context, signal);
      continue;
    }
    const { namespace, name = '' } = pod.metadata;
    const body = { spec: { nodeName: decision.nodeName }, metadata: { uid: pod.metadata.uid } };
    const bound = await api.patch(apiResources.pods, { namespace, name }, { kind: 'merge', body }, signal);
    pods = pods.map((other) => (other === pod ? bound : other));
  }
}

async function sayUnschedulable(
  pod: Pod,
  message: string,
  { api, clock }: ControllerContext,
  signal: AbortSignal,
): Promise<void> {
  const current = findCondition(pod.status?.conditions, 'PodScheduled');
  if (current?.status === 'False' && current.message === message) return;
  const conditions = replaceCondition(pod.status?.conditions ?? [], {
    type: 'PodScheduled',
    status: 'False',
    reason: 'Unschedulable',
    message,
    lastProbeTime: null,
    lastTransitionTime: current?.lastTransitionTime ?? apiTime(clock.now()),
  });
  await api.updateStatus(apiResources.pods, { ...pod, status: { ...pod.status, conditions } }, signal);
}

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
